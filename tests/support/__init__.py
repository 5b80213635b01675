"""What tests share: small models, planted heads, definitions by plain loops."""
