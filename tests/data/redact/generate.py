"""Makes the labelled set `labelled.jsonl`: fake secrets in realistic surroundings, and texts that
look like secrets and are none. Deterministic; run it to make the file again.

Each line: {"text", "secrets": [exact strings that must vanish], "kind"}. Lines without secrets
are hard negatives. The secrets are random strings in the issuers' published shapes; they are
assembled here from pieces so that no scanner mistakes this file for a leak.
"""

import base64
import hashlib
import json
import random
import string
import uuid
from pathlib import Path

RANDOM = random.Random(20261130)
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"


def pick(alphabet: str, size: int) -> str:
    return "".join(RANDOM.choice(alphabet) for _ in range(size))


def b64(size: int) -> str:
    return base64.b64encode(RANDOM.randbytes(size)).decode()


def jwt() -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head, body = {"alg": "HS256", "typ": "JWT"}, {"sub": pick(HEX, 12), "exp": 1790000000}
    return f"{part(head)}.{part(body)}.{pick(URLSAFE, 43)}"


def pem(kind: str) -> str:
    body = b64(400)
    lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


KEYS = {
    "aws-key-id": lambda: "AK" + "IA" + pick(BASE32, 16),
    "github": lambda: "gh" + RANDOM.choice("pousr") + "_" + pick(ALNUM, 36),
    "github-fine": lambda: "github_" + "pat_" + pick(ALNUM, 22) + "_" + pick(ALNUM, 59),
    "gitlab": lambda: "gl" + "pat-" + pick(URLSAFE, 20),
    "slack-bot": lambda: (
        f"xoxb-{pick(string.digits, 12)}-{pick(string.digits, 12)}-{pick(ALNUM, 24)}"
    ),
    "openai": lambda: "sk-" + "proj-" + pick(URLSAFE, 74),
    "openai-old": lambda: "sk-" + pick(ALNUM, 48),
    "deepseek": lambda: "sk-" + pick(HEX, 32),
    "anthropic": lambda: "sk-" + "ant-api03-" + pick(URLSAFE, 93) + "AA",
    "openrouter": lambda: "sk-" + "or-v1-" + pick(HEX, 64),
    "stripe": lambda: "sk_" + "live_" + pick(ALNUM, 24),
    "google": lambda: "AI" + "za" + pick(URLSAFE, 35),
    "google-oauth": lambda: "ya" + "29.a0" + pick(URLSAFE, 120),
    "google-client": lambda: "GOC" + "SPX-" + pick(URLSAFE, 28),
    "npm": lambda: "np" + "m_" + pick(ALNUM, 36),
    "pypi": lambda: "py" + "pi-AgEIcHlwaS5vcmc" + pick(URLSAFE, 120),
    "huggingface": lambda: "h" + "f_" + pick(string.ascii_letters, 34),
    "groq": lambda: "gs" + "k_" + pick(ALNUM, 52),
    "digitalocean": lambda: "dop" + "_v1_" + pick(HEX, 64),
    "databricks": lambda: "da" + "pi" + pick(HEX, 32),
    "sendgrid": lambda: "S" + "G." + pick(URLSAFE, 22) + "." + pick(URLSAFE, 43),
    "telegram": lambda: pick("123456789", 10) + ":A" + "A" + pick(URLSAFE, 33),
    "discord": lambda: "MT" + pick(ALNUM, 24) + "." + pick(URLSAFE, 6) + "." + pick(URLSAFE, 38),
    "linear": lambda: "lin" + "_api_" + pick(ALNUM, 40),
    "notion": lambda: "nt" + "n_" + pick(ALNUM, 46),
    "sentry": lambda: "sntr" + "yu_" + pick(HEX, 64),
    "supabase": lambda: "sb" + "p_" + pick(HEX, 40),
    "vault": lambda: "hv" + "s." + pick(URLSAFE, 95),
    "twilio": lambda: "S" + "K" + pick(HEX, 32),
    "docker": lambda: "dck" + "r_pat_" + pick(URLSAFE, 27),
    "jwt": jwt,
}
KEY_PLACES = (
    "export {NAME}={k}",
    "{NAME}={k}\nDEBUG=1\n",
    '{{"{name}": "{k}", "debug": true}}',
    "{name}: {k}\nregion: eu-west-1\n",
    'client = Client("{k}")  # from the dashboard',
    "Here is my key, please use it for the tests: {k}",
    "$ curl -H 'X-Api-Key: {k}' https://api.service.test/v1/models\n200 OK",
    "the server answered 401 with {k}, so I made a new one",
    'echo \\"key\\\\n{k}\\" >> .env',
    "https://api.service.test/v1/items?key={k}&page=2",
)
VALUES = {
    "password": (
        lambda: pick(string.ascii_lowercase, 7) + pick(string.digits, 3) + RANDOM.choice("!#%_"),
        (
            "DB_PASSWORD={v}",
            "POSTGRES_PASSWORD={v}\nPOSTGRES_USER=app",
            'password: "{v}"',
            "password = '{v}'",
            '{{"user": "app", "password": "{v}"}}',
            "mysql --user app --password={v} shop",
            "spring.datasource.password={v}",
            'conn = connect(host="db", passwd="{v}")',
            '\\"password\\": \\"{v}\\"',
            "Server=db;User Id=app;Pwd={v};Encrypt=true",
        ),
    ),
    "secret": (
        lambda: pick(ALNUM, RANDOM.choice((32, 40, 64))),
        (
            "CLIENT_SECRET={v}",
            'client_secret: "{v}"',
            "const SESSION_SECRET = '{v}';",
            '"webhook_secret": "{v}"',
            "AUTH_TOKEN={v}",
            "api_key = '{v}'",
            '"accessToken": "{v}"',
            "x-api-key: {v}",
            "--token {v} --region eu",
            "SECRET_KEY = '{v}'",
            "registry.npmjs.test/:_authToken={v}",
        ),
    ),
    "aws-secret": (
        lambda: b64(30),
        ("aws_secret_access_key = {v}", "AWS_SECRET_ACCESS_KEY={v}", "AccountKey={v};Suffix=x"),
    ),
    "hex-secret": (
        lambda: pick(HEX, 40),
        ("API_SECRET={v}", 'encryption_key: "{v}"', "token: '{v}'"),
    ),
    "uuid-secret": (
        lambda: str(uuid.UUID(int=RANDOM.getrandbits(128), version=4)),
        ("HEROKU_API_KEY={v}", 'api_key: "{v}"'),
    ),
    "url-password": (
        lambda: pick(ALNUM, 14),
        (
            "DATABASE_URL=postgres://app:{v}@db.internal:5432/shop",
            "redis://:{v}@cache:6379/0",
            "amqp://svc:{v}@mq/vhost",
            "git clone https://dev:{v}@git.company.test/team/repo.git",
            'mongoose.connect("mongodb+srv://root:{v}@cluster0.x.mongodb.test/db")',
            "curl -u admin:{v} https://ci.company.test/job",
            "curl --user admin:{v} -X POST https://ci.company.test/job",
        ),
    ),
    "bearer": (
        lambda: pick(URLSAFE, 44),
        (
            "Authorization: Bearer {v}",
            "curl -H 'Authorization: Bearer {v}' https://api.test/",
            '"authorization": "Bearer {v}"',
            "headers={{'Authorization': 'token {v}'}}",
        ),
    ),
    "basic": (
        lambda: base64.b64encode(f"app:{pick(ALNUM, 12)}".encode()).decode(),
        ("Authorization: Basic {v}", '"Authorization": "Basic {v}"'),
    ),
    "hook": (
        lambda: f"T{pick(ALNUM.upper(), 8)}/B{pick(ALNUM.upper(), 8)}/{pick(ALNUM, 24)}",
        (
            "curl -d x https://hooks.slack.com/services/{v}",
            "SLACK=https://hooks.slack.com/services/{v}",
        ),
    ),
    "signed": (
        lambda: pick(HEX, 64),
        ("https://b.s3.test/o?X-Amz-Date=20260528T000000Z&X-Amz-Signature={v}",),
    ),
}


def image() -> str:
    return "data:image/png;base64," + b64(600)


def word() -> str:
    return pick(string.ascii_lowercase, RANDOM.randrange(3, 10))


def camel() -> str:
    return word() + "".join(word().capitalize() for _ in range(RANDOM.randrange(2, 5)))


NEGATIVES = (
    lambda: f"commit {pick(HEX, 40)}\nAuthor: A <a@b.test>\n\n    {word()} the {word()}",
    lambda: f"* {pick(HEX, 7)} {pick(HEX, 40)} (HEAD -> main) {word()}",
    lambda: f"request_id={uuid.UUID(int=RANDOM.getrandbits(128), version=4)} took 12ms",
    lambda: f"![shot]({image()})",
    lambda: f'<img src="{image()}">',
    lambda: f'    "integrity": "sha512-{b64(64)}",',
    lambda: (
        f'  resolved "https://registry.test/x/-/x-1.2.3.tgz#{pick(HEX, 40)}"\n  integrity sha512-{b64(64)}'
    ),
    lambda: f'checksum = "{hashlib.sha256(RANDOM.randbytes(8)).hexdigest()}"',
    lambda: f"{word()}=={RANDOM.randrange(9)}.1 --hash=sha256:{pick(HEX, 64)}",
    lambda: f"go.sum: github.com/{word()}/{word()} v1.2.3 h1:{b64(32)}",
    lambda: (
        f"!function(e,t){{var n={{}};function {camel()}(r){{if(n[r])return n[r].exports;var o=n[r]={{i:r,l:!1}};return e[r].call(o,{camel()})}}}}"
    ),
    lambda: (
        f"export class {camel().capitalize()} extends {camel().capitalize()}Provider2Factory {{}}"
    ),
    lambda: (
        f"tokens: {RANDOM.randrange(10**6)}, max_tokens={RANDOM.randrange(8192)}, token_count: 12"
    ),
    lambda: "password: string;\n  confirmPassword?: string;",
    lambda: "def login(self, password: str, token: Optional[str] = None) -> Session:",
    lambda: 'password = os.environ["DB_PASSWORD"]\ntoken = process.env.API_TOKEN',
    lambda: 'password = getpass.getpass("Password: ")',
    lambda: "API_KEY=${API_KEY}\nSECRET=$(cat /run/secrets/x)\nTOKEN={{ vault_token }}",
    lambda: "OPENAI_API_KEY=your-api-key-here\nPASSWORD=changeme\nTOKEN=<your token>",
    lambda: "api_key: 'sk-...'\ntoken: xxxxxxxxxxxxxxxxxxxx",
    lambda: "if user.password_hash != hash_password(form.password.data): return None",
    lambda: "PASS: TestProgressFunctions/Windows_Terminal_default (0.00s)",
    lambda: f"tests/test_auth.py::test_{word()}_token_refresh_2 PASSED [ 41%]",
    lambda: f"key={camel()}&sort_key=created_at&primary_key=id",
    lambda: f'<div key="{camel()}" className="flex items-center justify-between px-4 py-2">',
    lambda: f"keyboard: {{ shortcut: 'ctrl+shift+p' }}, keyframes: 'fade-in-{word()}'",
    lambda: f"for key, value in {camel()}.items(): cache[key] = value",
    lambda: (
        f"/home/dev/.cargo/registry/src/index.crates.io-6f17d22bba15001f/{word()}-1.0.{RANDOM.randrange(99)}/src/lib.rs"
    ),
    lambda: (
        f"s3://{word()}-{word()}-artifacts/{word()}/2026/05/28/{uuid.UUID(int=RANDOM.getrandbits(128))}.parquet"
    ),
    lambda: "postgres://user:password@localhost:5432/db is the default in the docs",
    lambda: "postgres://${DB_USER}:${DB_PASS}@${DB_HOST}/db",
    lambda: "http://localhost:3000/@scope/package@1.2.3 and git@github.com:org/repo.git",
    lambda: "The bearer of this letter is authorized; basic authentication is described below.",
    lambda: "Authorization: Bearer <token>\nAuthorization: Bearer $TOKEN",
    lambda: (
        f"-----BEGIN CERTIFICATE-----\n{b64(48)}\n-----END CERTIFICATE-----\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{pick(ALNUM, 40)} a@b"
    ),
    lambda: f"sha256:{pick(HEX, 64)} docker.io/library/{word()}:3.12-slim",
    lambda: f"0x{pick(HEX, 64)} is the transaction, block {RANDOM.randrange(10**7)}",
    lambda: f"the word list has {camel()}, {camel()} and token_{word()}_{word()}",
    lambda: f"secretName: {word()}-{word()}-tls\nsecretKeyRef:\n  key: {word()}",
    lambda: "sk-learn and sk_buff, skeleton-loading-placeholder-component-wrapper-element",
    lambda: f"traceparent: 00-{pick(HEX, 32)}-{pick(HEX, 16)}-01",
    lambda: (
        f'"uuid":"{uuid.UUID(int=RANDOM.getrandbits(128))}","parentUuid":"{uuid.UUID(int=RANDOM.getrandbits(128))}"'
    ),
    lambda: (
        f"toolu_{pick(ALNUM, 24)} msg_{pick(ALNUM, 24)} call_{pick(ALNUM, 24)} req_{pick(ALNUM, 24)}"
    ),
    lambda: "新しいトークンの有効期限は 3600 秒です。password: は空にできません",
    lambda: "密码：请在设置页面修改；token 数量：12000",
)


def cases() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for kind, make in KEYS.items():
        for place in RANDOM.sample(KEY_PLACES, 6):
            secret = make()
            name = kind.replace("-", "_") + "_value"
            found.append(
                {
                    "kind": kind,
                    "text": place.format(k=secret, name=name, NAME=name.upper()),
                    "secrets": [secret],
                }
            )
    for kind, (make, places) in VALUES.items():
        for place in places:
            for _ in range(4):
                secret = make()
                found.append({"kind": kind, "text": place.format(v=secret), "secrets": [secret]})
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
        block = pem(kind)
        found.append(
            {"kind": "pem", "text": f"$ cat id\n{block}\n$", "secrets": [block.split("\n")[2]]}
        )
        flat = block.replace("\n", "\\n")
        found.append({"kind": "pem", "text": f'"key": "{flat}"', "secrets": [block.split("\n")[3]]})
        cut = block[:230]
        found.append(
            {
                "kind": "pem-cut",
                "text": f"{cut}\n[… 900 bytes left out …]",
                "secrets": [cut.split("\n")[2]],
            }
        )
    for make in NEGATIVES:
        found += [{"kind": "clean", "text": make(), "secrets": []} for _ in range(12)]
    return found


if __name__ == "__main__":
    target = Path(__file__).with_name("labelled.jsonl")
    with target.open("w", encoding="utf-8") as out:
        for case in cases():
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(f"{target}: {sum(1 for _ in target.open(encoding='utf-8'))} lines")
