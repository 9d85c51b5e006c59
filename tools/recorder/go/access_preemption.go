// Built inside a Kubernetes source tree: whether evictions are still under way, and all nodes that could be chosen.
package preemption

// Idle says that no preemption is under way.
func (e *Executor) Idle() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.preempting.Len() == 0
}
