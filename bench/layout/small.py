def measure(bench, tools): pass
