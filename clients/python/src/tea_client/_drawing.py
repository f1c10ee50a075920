class Drawing(str):
    """SVG text, which a notebook renders if it is the value of a cell."""

    def _repr_svg_(self) -> str:
        return self
