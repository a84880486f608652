"""Studies: many runs, resumable and in parallel, with tables, figures and a report.

A plan is a TOML file that names data sets, variants and seeds. `run_study` does the missing runs
and keeps all results in a SQLite file; `write_report` makes tables and figures of them.
"""

from coevo.study.exchange import export_runs, import_runs, open_results
from coevo.study.plan import SHIPPED, Plan, PlanError, read_plan
from coevo.study.progress import Progress, study_progress
from coevo.study.report import write_report
from coevo.study.runner import run_study
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
