#!/bin/sh
# pypdf 7.1.1: the text of a page lacks what was typed into its form.
#
# A filled field of a form is an annotation with its own appearance, which every
# viewer shows. extract_text reads the content of the page only: the label is there, the
# answer is not, nor are texts that were added with a comment tool. The values of the
# fields are in get_form_text_fields, by name and without their places.
#
# A good guess: extract_text returns the text that a reader sees.
#
# Seen on 29 November 2026:
#   text: 'Serial number:'
#   fields: {'serial': 'A-17'}
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "pypdf==7.1.1" "reportlab==5.1.0" >&2
cat >finding.py <<'PY'
from pypdf import PdfReader
from reportlab.pdfgen import canvas

page = canvas.Canvas("form.pdf")
page.drawString(72, 700, "Serial number:")
page.acroForm.textfield(name="serial", value="A-17", x=180, y=695, width=100, height=20)
page.save()

reader = PdfReader("form.pdf")
print(f"text: {reader.pages[0].extract_text().strip()!r}")
print("fields:", reader.get_form_text_fields())
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
