"""HTTP extenders: webhooks that filter, score, preempt and bind for the scheduler."""
