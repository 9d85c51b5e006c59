"""A token file that is replaced while the service runs."""

from __future__ import annotations

from pathlib import Path

from kubesched.http.access import BearerToken


def test_last_token_counts_until_the_file_has_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = BearerToken(str(file))
    file.write_text("")
    assert token.admits("Bearer first")
    file.unlink()
    assert token.admits("Bearer first")
    file.write_text("the second\n")
    assert token.admits("Bearer the second")
    assert not token.admits("Bearer first")
