"""The OpenAPI description of `aria serve`, and a page of it that needs no network."""

from __future__ import annotations

import html
import json
from typing import Any

_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "description": "assistant, user, system, tool or a fitted role"},
        "content": {"type": ["string", "array", "null"]},
        "tool_calls": {"type": "array", "items": {"type": "object"}},
        "name": {"type": "string"},
    },
}
_ITEM = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {"type": "array", "items": _MESSAGE},
        "agent": {
            "type": "string",
            "description": "the fitted role that the assistant is, where several were fitted",
        },
    },
}
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}}
_STATUS = {
    "400": "no JSON",
    "401": "the key is missing or wrong",
    "408": "the body did not arrive in time",
    "413": "too much in one request",
    "422": "not of this shape",
    "429": "too many requests of one address: ask again after Retry-After",
    "503": "full: ask again after Retry-After",
}


VERSION = "1.0"  # of this description, not of the package


def specification(limit: int) -> dict[str, Any]:
    """The document that /openapi.json has; limit: items in one request."""
    number = {"type": ["number", "null"]}
    last = {"type": "array", "items": {"type": "number"}}
    each = {"type": "array", "items": {"type": "array", "items": number}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "aria serve",
            "version": VERSION,
            "description": "The credit of every assistant message of whole dialogues.",
        },
        "paths": {
            "/score_dialogues": {
                "post": _scoring("The credit of every assistant message, by item", each, limit)
            },
            "/score": {
                "post": _scoring("The credit of the last message of each item", last, limit)
            },
            "/health": {"get": _plain("Whether the server answers", "application/json")},
            "/metrics": {"get": _plain("Counts for Prometheus", "text/plain")},
        },
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _scoring(summary: str, scores: dict[str, Any], limit: int) -> dict[str, Any]:
    items = {"type": "array", "items": _ITEM, "maxItems": limit}
    body = {"type": "object", "required": ["items"], "properties": {"items": items}}
    answer = {"type": "object", "properties": {"scores": scores}}
    refused = {code: _response(about, _ERROR) for code, about in _STATUS.items()}
    return {
        "summary": summary,
        "security": [{"key": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _response("one entry an item", answer), **refused},
    }


def _plain(summary: str, kind: str) -> dict[str, Any]:
    said = {"description": summary, "content": {kind: {}}}
    return {"summary": summary, "responses": {"200": said}}


def _response(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def page(document: dict[str, Any]) -> str:
    """The description for people: HTML without scripts."""
    parts = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            rows = "".join(
                f"<tr><td>{code}</td><td>{html.escape(said['description'])}</td></tr>"
                for code, said in about["responses"].items()
            )
            body = about.get("requestBody")
            shown = f"<pre>{html.escape(json.dumps(body, indent=1))}</pre>" if body else ""
            head = f"<h2>{method.upper()} {path}</h2><p>{html.escape(about['summary'])}</p>"
            parts.append(f"{head}{shown}<table>{rows}</table>")
    title = html.escape(document["info"]["title"])
    style = "body{font:15px sans-serif;max-width:50em;margin:2em auto}td{padding:.2em 1em}"
    link = '<p><a href="openapi.json">openapi.json</a></p>'
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{style}</style>"
        f"<h1>{title}</h1>{link}{''.join(parts)}"
    )
