"""Who may do what: bundles of rules, and decisions about them."""
