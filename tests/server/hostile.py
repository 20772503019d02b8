"""200 hostile names: nothing in them may run or load."""

from urllib.parse import quote

__all__ = ["PAYLOADS"]

SITE = "https://elsewhere.example"
PAYLOADS = [
    *(f"<script>window.hit={n};alert({n})</script>" for n in range(10)),
    *(f"<img src={q}x{q} onerror={q}alert(1){q}>" for q in ("", "'", '"', "`")),
    *(f"{q}><svg/onload=alert(1)>" for q in ("", "'", '"', "-->", "]]>", "</title>", "</script>")),
    *(f'{q} onmouseover={q}alert(1){q} autofocus onfocus="alert(1)' for q in ("", "'", '"')),
    *(f"</{tag}><script>alert('{tag}')</script>" for tag in ("bdi", "a", "svg", "title", "text")),
    *(f"</{tag}><img src=x onerror=alert(1)>" for tag in ("style", "textarea", "noscript", "q")),
    *(
        f"<{tag} src=//{SITE[8:]}/x></{tag}>"
        for tag in ("iframe", "script", "img", "embed", "video")
    ),
    *(f"<{tag} href={SITE}/>" for tag in ("base", "link rel=stylesheet", "a", "use")),
    *(
        f"{scheme}:alert(1)"
        for scheme in ("javascript", "JaVaScRiPt", "vbscript", "java\u00adscript")
    ),
    *(f"javascript:alert(1)//{scheme}://a.example/" for scheme in ("http", "https")),
    *(f"http://a.example/{q}onclick=alert(1)//{q}" for q in ("'", '"', " ", "\u00a0", "`")),
    *(f"https://a.example/?q={quote('<script>alert(1)</script>')}&n={n}" for n in range(3)),
    *(f"{{{{{code}}}}}" for code in ("7*7", "config", "''.__class__", "self.__init__")),
    *(f"{{% {code} %}}" for code in ("include 'page.html'", "for x in ().__class__")),
    *(f"${{{code}}}" for code in ("alert(1)", "7*7")),
    *("=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", '"; DROP TABLE pages; --', "' OR 1=1 --"),
    *(f"&{name};script&{other};alert(1)" for name, other in (("lt", "gt"), ("#60", "#62"))),
    *(f"{sign}script{sign}alert(1)" for sign in ("\u2028", "\u200f", "\u200b", "\ufeff", "\uff1c")),
    *(f"<{tag} onload=alert(1)>" for tag in ("body", "svg", "iframe", "math", "object")),
    *(f"<{tag} open ontoggle=alert(1)>" for tag in ("details", "details/", "DETAILS")),
    *(f'<form action="{SITE}"><button{n}>' for n in range(2)),
    *(f'<meta http-equiv="refresh" content="{n};url={SITE}">' for n in range(3)),
    *(f"<!--{n}--><script>alert({n})</script><!--" for n in range(3)),
    *(f"%3Cscript%3Ealert({n})%3C/script%3E" for n in range(3)),
    *(f"../../{name}" for name in ("etc/passwd", "v1/related", "?node=x#why")),
    *("constructor", "__proto__", "toString", "hasOwnProperty", "null", "undefined", "NaN"),
    *("x" * 300 + "<script>alert(1)</script>", "\U0001f469‍\U0001f4bb" * 20, "a" * 2000),
]
PAYLOADS = list(dict.fromkeys(" ".join(payload.split()) for payload in PAYLOADS))
PAYLOADS += [f"<b{n}><script>alert({n})//</script>\"'`" for n in range(200 - len(PAYLOADS))]
