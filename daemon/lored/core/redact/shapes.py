"""Shapes of keys that name their issuer: what a token looks like when it needs no context.

The shapes are facts that the issuers publish (prefix, alphabet, length); which ones are worth
knowing was learnt from the public rule lists of gitleaks (MIT) and detect-secrets
(Apache-2.0). The expressions are our own. Every one starts with literal characters, so that
the engine skips quickly, and consists only of the characters of `RUN_CHARACTERS`.
"""

import re
from typing import Final

RUN_CHARACTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
"""What tokens are made of; the scanner looks at unbroken runs of these only."""

RUN_LENGTH: Final = 20
"""Shortest token of any rule below (an AWS key id)."""

_RULES: Final[tuple[tuple[str, str], ...]] = (
    ("aws-key-id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    ("github-token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255}"),
    (
        "gitlab-token",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct|oas)-[\w.-]{20,}|GR1348941[\w-]{20,}",
    ),
    ("slack-token", r"xox[abeoprs]-[\w-]{15,}|xapp-\d-[\w-]{15,}|xoxe\.xox[bp]-[\w-]{15,}"),
    ("anthropic-key", r"sk-ant-[\w-]{20,}"),
    (
        "openai-key",
        r"sk-(?:proj|svcacct|admin|None|or-v\d|lf)-[\w-]{20,}|sk-[A-Za-z0-9_-]{20,}",
    ),
    ("stripe-key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,}"),
    ("google-key", r"AIza[\w-]{35}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{24,}"),
    ("npm-token", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", r"pypi-AgE[\w-]{50,}"),
    ("registry-token", r"rubygems_[0-9a-f]{48}|dckr_(?:pat|oat)_[\w-]{27,}|cio[A-Za-z0-9]{32}"),
    (
        "model-provider-key",
        r"hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z]{34}|r8_[A-Za-z0-9]{37}|gsk_[A-Za-z0-9]{40,}"
        r"|xai-[A-Za-z0-9]{60,}|pplx-[A-Za-z0-9]{40,}|nvapi-[\w-]{60,}|tvly-[A-Za-z0-9-]{20,}"
        r"|lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|fw_[A-Za-z0-9]{22,24}|jina_[A-Za-z0-9]{40,}",
    ),
    (
        "cloud-token",
        r"do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}"
        r"|hv[sbr]\.[\w-]{24,}|pul-[0-9a-f]{40}"
        r"|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|pscale_(?:tkn|pw|oauth)_[\w.-]{32,}"
        r"|nfp_[A-Za-z0-9_]{36}|fm[12]_[\w-]{60,}|tskey-[a-z]+-[\w-]{20,}",
    ),
    (
        "service-token",
        r"lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}"
        r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0(?:atp|csp)-[\w-]{22,}"
        r"|SG\.[\w-]{16,32}\.[\w-]{16,64}|key-[0-9a-f]{32}"
        r"|NRAK-[A-Z0-9]{27}|sntry[su]_[\w-]{40,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}"
        r"|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9]{32,}|figd_[\w-]{40,}"
        r"|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|ATATT3[\w-]{60,}|bkua_[0-9a-f]{40}"
        r"|sgp_(?:[A-Za-z0-9]{16}_)?[0-9a-f]{40}|sq[uap]_[0-9a-f]{40}|xkeysib-[0-9a-f]{64}-\w{16}"
        r"|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}|EZ[AT]K[A-Za-z0-9]{54}|duffel_(?:test"
        r"|live)_[\w-]{8}[\w=-]{35}"
        r"|FLWSECK_TEST-[0-9a-h]{32}-X|shippo_(?:live|test)_[0-9a-f]{40}|rdme_[a-z0-9]{70}"
        r"|pnu_[A-Za-z0-9]{36}|tfp_[\w-]{16}[\w.=-]{43}|dnkey-[\w-]{14}[\w=-]{12}-[\w=-]{52}|ico-[A-Za-z0-9]{32}"
        r"|HRKU-AA[\w-]{40,}|LTAI[A-Za-z0-9]{20}|AKCp[A-Za-z0-9]{69}|p8e-[A-Za-z0-9]{32}"
        r"|NRII-[\w-]{32}|sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}|CLOJARS_[A-Za-z0-9]{60}"
        r"|oy2[a-z0-9]{43}"
        r"|EAA[MC][A-Za-z0-9]{100,}|EAAA[\w-]{60}|fio-u-[\w-]{14}[\w=-]{50}|ops_eyJ[A-Za-z0-9]{40,}"
        r"|phc_[A-Za-z0-9]{40,}|phx_[A-Za-z0-9]{40,}|SK[0-9a-f]{32}|AC[0-9a-f]{32}",
    ),
    ("age-key", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("jwt", r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    ("discord-token", r"(?:M[Tjz]|N[DTjz]|O[DT])[\w-]{22,26}\.[\w-]{6}\.[\w-]{27,}"),
)

NAMES: Final = tuple(name for name, _ in _RULES)
"""Rule names in the order of the groups of `SHAPES`."""

SHAPES: Final = re.compile(
    "|".join(f"(?P<r{i}>{pattern})" for i, (_, pattern) in enumerate(_RULES)), re.ASCII
)
"""All shapes at once; `match.lastgroup` is `r<index into NAMES>`."""

_HEADS: Final = (
    b"ABACAGAIAKASATCLEAEZFLGOGRHRLTMTMjMzNDNRNTNjNzODOTPMSGSKapbkcidadcdndodpdtdueyfi"
    b"fmfwghgiglgshfhvicjikelilsnfnpntnvopoyp8paphpnpppspupyr8rdrkrusbsesgshsksmsnsqtf"
    b"tstvwhxaxkxoya"
)
STARTS: Final = frozenset(_HEADS[i : i + 2] for i in range(0, len(_HEADS), 2))
"""First two bytes of every shape (Discord's tokens start with a number in base64: MT..OT)."""

TELEGRAM: Final = re.compile(r"(?<![0-9])\d{8,10}:AA[\w-]{33}(?![\w-])", re.ASCII)
"""The one token with a colon inside: id of the bot, then 35 characters that start with AA."""
