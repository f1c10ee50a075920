"""Writes documents into a directory, with the Python libraries for their formats."""

import datetime
import email.message
import os
import struct
import sys
import zlib

import docx
import openpyxl
import pptx
import pptx.util
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from ebooklib import epub

os.chdir(sys.argv[1])


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")


with open("dot.png", "wb") as f:
    f.write(png())

d = docx.Document()
d.core_properties.title, d.core_properties.author = "Pump report", "Ana"
d.add_heading("Pump report", 0)
d.add_heading("Findings", 1)
p = d.add_paragraph("The pressure is ")
p.add_run("too low").bold = True
p.add_run(" & ")
p.add_run("falls").italic = True
p.add_run(".")
d.add_paragraph("first", style="List Bullet")
d.add_paragraph("inner", style="List Bullet 2")
d.add_paragraph("second", style="List Bullet")
d.add_paragraph("one", style="List Number")
t = d.add_table(rows=2, cols=2)
for row, texts in zip(t.rows, [("pump", "bar"), ("p-1", "1 | 2")]):
    for cell, text in zip(row.cells, texts):
        cell.text = text
p = d.add_paragraph("Deleted: ")
deleted = OxmlElement("w:del")
run = OxmlElement("w:r")
text = OxmlElement("w:delText")
text.text = "secret"
run.append(text)
deleted.append(run)
p._p.append(deleted)
link = OxmlElement("w:hyperlink")
link.set(qn("r:id"), d.part.relate_to("https://example.com/a?b=1&c", docx.opc.constants.RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
run = OxmlElement("w:r")
text = OxmlElement("w:t")
text.text = "the manual"
run.append(text)
link.append(run)
p._p.append(link)
d.add_picture("dot.png")
d.save("report.docx")

s = pptx.Presentation()
slide = s.slides.add_slide(s.slide_layouts[1])
slide.shapes.title.text = "Plan"
body = slide.placeholders[1].text_frame
body.text = "buy"
body.add_paragraph().text = "seals"
body.paragraphs[1].level = 1
slide.notes_slide.notes_text_frame.text = "Say why."
slide = s.slides.add_slide(s.slide_layouts[5])
slide.shapes.title.text = "Costs"
table = slide.shapes.add_table(2, 2, 0, 0, pptx.util.Inches(4), pptx.util.Inches(1)).table
for (row, column), text in {(0, 0): "part", (0, 1): "EUR", (1, 0): "seal", (1, 1): "3.50"}.items():
    table.cell(row, column).text = text
slide.shapes.add_picture("dot.png", 0, 0)
s.save("deck.pptx")

b = openpyxl.Workbook()
sheet = b.active
sheet.title = "Readings"
for row in [("day", "bar", "ok"), (datetime.date(2026, 11, 29), 1.5, True), (None, None, None), ("a\nb", 0.25, False)]:
    sheet.append(row)
sheet["A2"].number_format = "yyyy-mm-dd"
sheet["B4"].number_format = "0%"
b.create_sheet("Empty")
b.create_sheet("More")["C2"] = "far"
b.save("book.xlsx")

e = epub.EpubBook()
e.set_title("Field guide")
e.set_language("en")
e.add_author("Ben")
chapters = []
for n, text in enumerate(["<h1>Start</h1><p>Read me.</p>", "<h1>End</h1><p>Done.</p>"], 1):
    c = epub.EpubHtml(title=f"Part {n}", file_name=f"c{n}.xhtml", lang="en")
    c.content = text
    e.add_item(c)
    chapters.append(c)
e.toc, e.spine = chapters, chapters
e.add_item(epub.EpubNcx())
epub.write_epub("guide.epub", e)

m = email.message.EmailMessage()
m["From"], m["To"], m["Subject"] = "Zoë <zoe@example.com>", "ops@example.com", "Pump ✓"
m["Date"] = "Sun, 29 Nov 2026 10:00:00 +0000"
m.set_content("plain text")
m.add_alternative("<p>See the <b>report</b>, ž.</p>", subtype="html", charset="iso-8859-2")
m.add_attachment(open("report.docx", "rb").read(), maintype="application", subtype="octet-stream", filename="report.docx")
m.add_attachment("a;b\n", subtype="csv", filename="data.csv")
m.add_attachment(png(), maintype="image", subtype="png", filename="dot.png")
m.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="firmware.bin")
with open("mail.eml", "wb") as f:
    f.write(bytes(m))
