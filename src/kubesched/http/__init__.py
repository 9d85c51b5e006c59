"""What every HTTP server here shares: listening, TLS, who may ask, and errors as documents."""
