"""handrail: hands for AI agents, with a rail along every edge."""
