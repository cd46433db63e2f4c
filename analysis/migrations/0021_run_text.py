"""A run is found by its words through the database's own text index, in place of a table of words."""

import re
import unicodedata
from itertools import islice

import django.db.models.deletion
from django.db import migrations, models

_WORD = re.compile(r"[^\W_]+")
_NAMES = {
    "bert": "BERT base",
    "gpt2": "GPT-2 small",
    "resnet": "ResNet-50",
    "resnet18": "ResNet-18",
    "vit_b_16": "ViT-B/16",
    "bert-tiny": "BERT tiny",
    "distilbert": "DistilBERT",
}
_ROWS_AT_ONCE = 2_000

_MAKE = {
    "sqlite": (
        "CREATE VIRTUAL TABLE analysis_runtext_index USING fts5("
        "words, content='analysis_runtext', content_rowid='run_id', detail='none', prefix='1 2 3 4 5 6 7 8', "
        'tokenize="unicode61 remove_diacritics 0")',
        "INSERT INTO analysis_runtext_index(analysis_runtext_index) VALUES ('rebuild')",
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


def fill_and_index(apps, schema_editor):
    """PostgreSQL makes no index of a table with changes under way; SQLite's is made in one go of what is there."""
    steps = (fill, make_index) if schema_editor.connection.vendor == "sqlite" else (make_index, fill)
    for step in steps:
        step(apps, schema_editor)


def drop_index(apps, schema_editor):
    for statement in _TAKE_BACK[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def fill(apps, schema_editor):
    """Write the words of every run, a bounded number at once."""
    run, text = apps.get_model("analysis", "Run"), apps.get_model("analysis", "RunText")
    columns = ("pk", "name", "note", "model", "device_name")
    rows = run._base_manager.order_by("pk").values_list(*columns).iterator(_ROWS_AT_ONCE)
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        text.objects.bulk_create(text(run_id=pk, words=_words(*texts)) for pk, *texts in chunk)


def _words(name, note, model, device_name):
    written = f"{model} {_NAMES.get(model, '')} {device_name} {name} {note}"
    plain = unicodedata.normalize("NFKD", written.casefold())
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return " ".join(list(dict.fromkeys(word[:40] for word in _WORD.findall(letters)))[:220])


class Migration(migrations.Migration):
    dependencies = [("analysis", "0020_token_address")]

    operations = [
        migrations.CreateModel(
            name="RunText",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="text",
                        serialize=False,
                        to="analysis.run",
                    ),
                ),
                ("words", models.TextField()),
            ],
        ),
        migrations.RunPython(fill_and_index, drop_index),
        migrations.DeleteModel(name="SearchTerm"),
    ]
