"""Write .dvc/plots_page.html, the page of `dvc plots show` with its drawing library inside.

    python scripts/plots_page.py

DVC's own page fetches Vega from the network, and stays blank without one. The bundle (Vega,
Vega-Lite and Vega-Embed, BSD-3-Clause) comes from the package vl-convert-python.
"""

from __future__ import annotations

from pathlib import Path

import vl_convert

PAGE = Path(".dvc/plots_page.html")
PLACEHOLDERS = ("{plot_divs}", "{refresh_tag}", "{scripts}")
HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>aria-dvc: plots</title>
{refresh_tag}
<style>
body {{ font-family: sans-serif; margin: 1.5rem; }}
table {{ border-spacing: 15px; }}
</style>
<!-- {notice} -->
<script>
{bundle}
</script>
</head>
<body>
<h1>aria-dvc</h1>
{plot_divs}
</body>
</html>
"""
NOTICE = (
    f"Vega {vl_convert.get_vega_version()}, Vega-Lite and Vega-Embed: BSD-3-Clause, (c) University "
    "of Washington Interactive Data Lab; bundled by vl-convert"
)


def page() -> str:
    """The page with DVC's placeholders left in it."""
    bundle = vl_convert.javascript_bundle().replace("</script", "<\\/script")
    assert not any(placeholder in bundle for placeholder in PLACEHOLDERS)
    return HTML.format(
        notice=NOTICE, bundle=bundle, plot_divs="{plot_divs}", refresh_tag="{refresh_tag}"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
