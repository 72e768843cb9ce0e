"""The loop between a model and its tools. It knows tools only by what a toolbox shows of them."""
