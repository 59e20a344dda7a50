"""Results of full runs, kept in SQLite so that runs can be compared."""

import json
import sqlite3

SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY, area TEXT NOT NULL, started TEXT NOT NULL, seconds REAL NOT NULL,
    revision TEXT, machine TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metric (
    run INTEGER NOT NULL REFERENCES run(id), name TEXT NOT NULL, value REAL NOT NULL, unit TEXT NOT NULL,
    better TEXT NOT NULL, goal REAL, samples INTEGER NOT NULL, min REAL NOT NULL, max REAL NOT NULL,
    PRIMARY KEY (run, name));
CREATE TABLE IF NOT EXISTS skipped (run INTEGER NOT NULL REFERENCES run(id), name TEXT NOT NULL, why TEXT NOT NULL);
"""


def keep(path: str, result: dict, started: str, seconds: float, revision: str) -> int:
    """Adds a run (`started` in UTC, ISO 8601); returns its number."""
    base = sqlite3.connect(path)
    try:
        with base:
            base.executescript(SCHEMA)
            run = base.execute(
                "INSERT INTO run (area, started, seconds, revision, machine) VALUES (?, ?, ?, ?, ?)",
                (result["area"], started, seconds, revision, json.dumps(result["machine"]))).lastrowid
            base.executemany(
                "INSERT OR REPLACE INTO metric VALUES (?, :name, :value, :unit, :better, :goal, :samples, :min, :max)"
                .replace("?", str(run)), result["metrics"])
            base.executemany("INSERT INTO skipped VALUES (?, ?, ?)",
                             [(run, entry["name"], entry["why"]) for entry in result["skipped"]])
        return run
    finally:
        base.close()
