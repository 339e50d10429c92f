"""Other memories as statements of ours: one pure reader per form, one shape of result."""
