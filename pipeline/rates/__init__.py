"""Pass rates and what is known of them."""
