"""The database's own text index of the words that a run is found by."""

from django.db import migrations

_MAKE = {
    "sqlite": (
        "CREATE VIRTUAL TABLE analysis_runtext_index USING fts5("
        "words, content='analysis_runtext', content_rowid='run_id', detail='none', prefix='1 2 3 4 5 6 7 8', "
        'tokenize="unicode61 remove_diacritics 0")',
        "CREATE TRIGGER analysis_runtext_inserted AFTER INSERT ON analysis_runtext BEGIN "
        "INSERT INTO analysis_runtext_index(rowid, words) VALUES (new.run_id, new.words); END",
        "CREATE TRIGGER analysis_runtext_deleted AFTER DELETE ON analysis_runtext BEGIN "
        "INSERT INTO analysis_runtext_index(analysis_runtext_index, rowid, words) "
        "VALUES ('delete', old.run_id, old.words); END",
        "CREATE TRIGGER analysis_runtext_updated AFTER UPDATE ON analysis_runtext BEGIN "
        "INSERT INTO analysis_runtext_index(analysis_runtext_index, rowid, words) "
        "VALUES ('delete', old.run_id, old.words); "
        "INSERT INTO analysis_runtext_index(rowid, words) VALUES (new.run_id, new.words); END",
    ),
    "postgresql": (
        "CREATE INDEX analysis_runtext_words ON analysis_runtext "
        "USING gin (array_to_tsvector(string_to_array(words, ' ')))",
    ),
}
_TAKE_BACK = {
    "sqlite": (
        "DROP TRIGGER analysis_runtext_inserted",
        "DROP TRIGGER analysis_runtext_deleted",
        "DROP TRIGGER analysis_runtext_updated",
        "DROP TABLE analysis_runtext_index",
    ),
    "postgresql": ("DROP INDEX analysis_runtext_words",),
}


def make_index(apps, schema_editor):
    for statement in _MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    for statement in _TAKE_BACK[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    replaces = [("analysis", "0021_run_text")]
    dependencies = [("analysis", "0001_portal")]

    operations = [migrations.RunPython(make_index, drop_index)]
