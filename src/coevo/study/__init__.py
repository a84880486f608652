"""Many runs: plan, run (resumable, parallel), store, tables, figures, report.

A study is a TOML file that says which data sets, variants and seeds. `run_study` does what is
missing of it and keeps every run in a SQLite file; `write_report` makes tables and figures of them.
"""

from coevo.study.exchange import export_runs, import_runs, open_results
from coevo.study.plan import SHIPPED, Plan, PlanError, read_plan
from coevo.study.report import write_report
from coevo.study.running import Progress, run_study, study_progress
from coevo.study.store import Record, Store

__all__ = [
    "SHIPPED",
    "Plan",
    "PlanError",
    "Progress",
    "Record",
    "Store",
    "export_runs",
    "import_runs",
    "open_results",
    "read_plan",
    "run_study",
    "study_progress",
    "write_report",
]
