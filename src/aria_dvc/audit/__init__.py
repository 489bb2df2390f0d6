"""Is the credit of a log any good? `aria audit LOG [--credit COLUMN]`.

`contents` says what is there, `signal` how much an estimator finds on held-out groups, `judged`
what a given credit consists of; `advice` puts it into words, `page` into a table and a page.
"""
