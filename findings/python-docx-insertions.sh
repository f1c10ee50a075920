#!/bin/sh
# python-docx 1.2.0: the text of a paragraph lacks what a reviewer inserted.
#
# A paragraph with tracked changes has its insertions in <w:ins>, and Word shows them.
# paragraph.text reads only the runs and links directly below the paragraph, so an
# insertion is missing, and so is a deletion: the result is neither the old text nor the
# new one. The text of a content control (<w:sdt>) and of a field (<w:fldSimple>) is
# missing too.
#
# A good guess: the text is what Word shows, with the insertions and without the
# deletions.
#
# Seen on 29 November 2026:
#   Word shows 'Torque 47 Nm', before the change 'Torque 49 Nm': paragraph.text is 'Torque 4 Nm'
#   Word shows 'Serial A-17 of 2026': paragraph.text is 'Serial  of '
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install -q "python-docx==1.2.0" >&2
cat >finding.py <<'PY'
import docx
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls


def add(paragraph, xml):
    name, rest = xml[1:].split(" ", 1)
    paragraph._p.append(parse_xml(f"<{name} {nsdecls('w')} {rest}"))


change = 'w:author="a" w:date="2026-01-01T00:00:00Z"'
document = docx.Document()
reviewed = document.add_paragraph("Torque 4")
add(reviewed, f'<w:ins w:id="1" {change}><w:r><w:t>7</w:t></w:r></w:ins>')
add(reviewed, f'<w:del w:id="2" {change}><w:r><w:delText>9</w:delText></w:r></w:del>')
reviewed.add_run(" Nm")
form = document.add_paragraph("Serial ")
add(form, "<w:sdt ><w:sdtContent><w:r><w:t>A-17</w:t></w:r></w:sdtContent></w:sdt>")
form.add_run(" of ")
add(form, '<w:fldSimple w:instr=" DATE "><w:r><w:t>2026</w:t></w:r></w:fldSimple>')
document.save("report.docx")

texts = [repr(p.text) for p in docx.Document("report.docx").paragraphs]
print("Word shows 'Torque 47 Nm', before the change 'Torque 49 Nm': paragraph.text is", texts[0])
print("Word shows 'Serial A-17 of 2026': paragraph.text is", texts[1])
PY
venv/bin/python finding.py >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
