"""From a page of the book to notebooks: its cells as they are, its text as plain Markdown with the values in it.

- `values`   what the page's own cells make of an expression, and which expressions only the reader's machine can answer
- `parsing`  MyST read by the book's own parser: tokens and directives
- `book`     what the pages have in common: numbers of equations, targets of links, references, addresses
- `prose`    tokens of MyST turned into tokens of plain Markdown
- `markdown` tokens of plain Markdown, and how they are written
- `cells`    cells and notebooks as files hold them
- `pages`    one page turned into its notebook, and its exercises into another
"""
