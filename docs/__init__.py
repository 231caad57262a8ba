"""The documentation: pages in Markdown, and the programs that write parts of them."""
