"""What a model sees: tool names, schemas, descriptions, and the words of results. Tools never ask for approval."""
