"""The README's pictures are those that docs/screenshots.py renews."""

import pytest

from docs.screenshots import HEIGHTS, IMAGES, README, with_caption


def test_the_readme_shows_each_picture_once_and_the_folder_holds_no_other() -> None:
    for name in HEIGHTS:
        assert f"![A (1): text]({'docs/images'}/{name}.png)" in with_caption(README.read_text(), name, "A [1]: text")
    assert sorted(path.stem for path in IMAGES.iterdir()) == sorted(HEIGHTS)


def test_a_picture_that_the_readme_does_not_show_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times"):
        with_caption("no picture\n", "result", "x")
