"""Answers are the same however their bytes are cut, and what is no HTTP is refused."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.kube.http_parser import LONGEST_HEAD, HttpSyntaxError, ResponseParser, whole_answer

bodies = st.binary(max_size=300)


def parsed(*pieces: bytes) -> ResponseParser:
    parser = ResponseParser()
    for piece in pieces:
        parser.feed(piece)
    return parser


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({place % (len(data) + 1) for place in at})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)]) if a < b]


def in_chunks(body: bytes, at: list[int]) -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in cut(body, at))
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies, st.lists(st.integers(0, 1000)))
def test_body_with_a_length_is_read_however_it_is_cut(body: bytes, places: list[int]) -> None:
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\nX-One: a\r\n\r\n%s" % (len(body), body)
    parser = parsed(*cut(answer, places))
    assert parser.complete
    assert not parser.excess
    assert parser.head is not None
    assert (parser.head.status, parser.head.keep_alive) == (201, True)
    assert b"".join(parser.pieces) == body


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies, st.lists(st.integers(0, 1000)), st.lists(st.integers(0, 1000)))
def test_body_in_chunks_is_read_however_it_is_cut(body: bytes, chunks: list[int], places: list[int]) -> None:
    parser = parsed(*cut(in_chunks(body, chunks), places))
    assert parser.complete
    assert b"".join(parser.pieces) == body


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(bodies, st.lists(st.integers(0, 1000)), st.binary(min_size=1, max_size=20))
def test_bytes_after_the_end_are_noticed(body: bytes, chunks: list[int], more: bytes) -> None:
    assert parsed(in_chunks(body, chunks), more).excess
    assert parsed(in_chunks(body, chunks) + more).excess
    assert parsed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body + more)).excess


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200), st.lists(st.integers(0, 300)))
def test_rubbish_is_refused_and_never_crashes(rubbish: bytes, places: list[int]) -> None:
    try:
        parsed(*cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + rubbish, places))
        parsed(*cut(rubbish, places))
    except HttpSyntaxError:
        pass


answers = st.builds(
    lambda interim, status, headers, body: interim + b"HTTP/1.1 %d X\r\n%s\r\n%s" % (status, headers, body),
    st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nContent-Length: 0\r\n\r\n"]),
    st.sampled_from([200, 204, 304, 500]),
    st.sampled_from([b"", b"Content-Length: 2\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n"]),
    st.sampled_from([b"", b"o", b"ok", b"okay", b"2\r\nok\r\n0\r\n\r\n"]),
)


@given(answers)
def test_answer_in_one_piece_is_what_a_parser_makes_of_it(answer: bytes) -> None:
    """And where it is not, or the parser has more to say about it, it is left to the parser."""
    try:
        parser = parsed(answer)
    except HttpSyntaxError:
        parser = ResponseParser()
    in_order = parser.complete and not parser.excess
    if (whole := whole_answer(answer)) is not None:
        assert in_order
        assert whole == (parser.head, b"".join(parser.pieces))
    else:
        assert not in_order or b"chunked" in answer or answer.startswith(b"HTTP/1.1 1")


@pytest.mark.parametrize("cut_off", [0, 1, 10])
def test_usual_answer_takes_no_parser_if_it_is_whole(cut_off: int) -> None:
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n" + b"x" * 20
    assert (whole_answer(answer[: len(answer) - cut_off]) is not None) == (cut_off == 0)


def test_interim_answers_are_skipped() -> None:
    parser = parsed(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHT",
        b"TP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    )
    assert parser.head is not None
    assert parser.head.status == 200
    assert parser.pieces == [b"ok"]
    assert whole_answer(b"HTTP/1.1 100 Continue\r\n\r\n") is None


def test_chunk_extensions_and_trailers_are_ignored() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    parser = parsed(head + b"2;name=value\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert parser.complete
    assert parser.pieces == [b"ok"]


def test_body_without_a_length_ends_when_the_server_hangs_up() -> None:
    parser = parsed(b"HTTP/1.1 200 OK\r\n\r\n", b"some", b"thing")
    assert not parser.complete
    parser.feed_end()
    assert parser.complete
    assert parser.head is not None
    assert not parser.head.keep_alive
    assert b"".join(parser.pieces) == b"something"


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    assert parsed(b"HTTP/1.1 %d X\r\n\r\n" % status).complete


@pytest.mark.parametrize(
    ("answer", "keep_alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
    ],
)
def test_connection_is_kept_if_the_server_keeps_it(answer: bytes, keep_alive: bool) -> None:
    head = parsed(answer).head
    assert head is not None
    assert head.keep_alive is keep_alive


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "first line"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "is not a header"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "is not a header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "is not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two different lengths"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "not understood"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\n", "size of a chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "longer than it said"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, "does not end"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", "switched protocols"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * LONGEST_HEAD, "longer than"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(answer: bytes, words: str) -> None:
    with pytest.raises(HttpSyntaxError, match=words):
        parsed(answer)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "before an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "in the middle"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "in the middle"),
    ],
)
def test_answer_that_breaks_off_is_an_error(sent: bytes, words: str) -> None:
    parser = ResponseParser()
    if sent:
        parser.feed(sent)
    with pytest.raises(HttpSyntaxError, match=words):
        parser.feed_end()
