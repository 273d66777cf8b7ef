"""The paper, reproduced: ``python -m reproduction --quick`` writes a report of its experiments.

Each table and figure is a module of its name, which says what is run (``runs``), how (``run``), and
how it is shown (``section``). `experiments` lists them, `runs` does them on all cores and keeps
their outcomes, `report` writes the page, `datasets` loads the paper's data sets, and `diagrams`
draws its tensor networks. None of this is in the installed package.
"""
