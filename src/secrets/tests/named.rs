//! Secrets that are recognised by their names, files or URLs.

use super::*;

#[test]
fn random_values_under_telling_names_go() {
    let (mixed, hex) = (drawn(BASE62, 24, 31), drawn(HEX, 40, 32));
    for (text, name, sort) in [
        ("password = \"@\"", "a.py", "password"),
        ("user.set_password(\"@\")", "a.py", "password"),
        ("const t = process.env.API_TOKEN || \"@\";", "a.js", "token"),
        ("const t = process.env[\"API_TOKEN\"] ?? '@';", "a.ts", "token"),
        ("t = os.getenv(\"API_TOKEN\") or \"@\"", "a.py", "token"),
        ("ENV[\"API_TOKEN\"] ||= \"@\"", "a.rb", "token"),
        ("$t = getenv('API_TOKEN') ?: '@';", "a.php", "token"),
        ("putenv('API_TOKEN=@');", "a.php", "token"),
        ("- name: API_TOKEN\n  value: @\n", "a.yml", "token"),
        ("- name: API_TOKEN\n  value: \"@\"\n", "a.yml", "token"),
        ("{\"name\": \"API_TOKEN\", \"value\": \"@\"}", "a.json", "token"),
        ("{\n  \"name\": \"API_TOKEN\",\n  \"value\": \"@\"\n}", "a.json", "token"),
        ("<string name=\"api_key\">@</string>", "a.xml", "API key"),
        ("buildConfigField(\"String\", \"API_KEY\", \"\\\"@\\\"\")", "a.kts", "API key"),
        ("p.setProperty(\"api.key\", \"@\");", "a.java", "API key"),
        ("Value(\"${api.key:@}\")", "a.java", "API key"),
        ("var token string = \"@\"", "a.go", "token"),
        ("token = \"\"\"@\"\"\"", "a.py", "token"),
        ("p.add_argument(\"--api-key\", type=str, default=\"@\")", "a.py", "API key"),
        ("  .apiKey(\"@\")", "a.java", "API key"),
        ("setApiKey('@')", "a.js", "API key"),
        ("  api_key \"@\"\n", "a.rb", "API key"),
        ("request.bearer_auth(\"@\")", "a.rs", "token"),
        ("dsn = \"host=h user=u password=@ dbname=d\"", "a.py", "password"),
        ("new SqlConnection(\"Server=s;Password=@;\")", "a.cs", "password"),
        ("ALTER USER u IDENTIFIED BY '@';", "a.sql", "password"),
        ("CREATE USER u WITH PASSWORD '@';", "a.sql", "password"),
        ("curl -H \"Authorization: Token @\" u", "a.sh", "token"),
        ("headers={'Authorization': 'Token @'}", "a.py", "token"),
        ("api_key @\n", "a.conf", "API key"),
        ("port 1\nrequirepass @\nsave 1\n", "redis.conf", "password"),
        ("  SetEnv API_TOKEN @\n", "a.conf", "token"),
        ("fastcgi_param API_TOKEN @;\n", "a.conf", "token"),
        ("psk=@", "a.conf", "password"),
        ("API key: @", "a.md", "API key"),
        ("| API_KEY | @ |", "a.md", "API key"),
        ("| `API_KEY` | `@` |", "a.md", "API key"),
        ("FROM a\nENV TOKEN @\n", "Dockerfile", "token"),
        ("DB_PASSWORD: '@'", "a.yml", "password"),
        ("  db-password: @  # old", "a.yml", "password"),
        ("{\"apiKey\": \"@\"}", "a.json", "API key"),
        ("{\\\"client_secret\\\": \\\"@\\\"}", "a.txt", "secret"),
        ("let token: &str = \"@\";", "a.rs", "token"),
        ("const SECRET_KEY: String = String::from(\"@\");", "a.rs", "secret"),
        ("secret := `@`", "a.go", "secret"),
        ("config.set('auth_token', '@')", "a.rb", "token"),
        ("os.environ[\"API_TOKEN\"] = \"@\"", "a.py", "token"),
        ("api_key=@", "a.ini", "API key"),
        ("api_key=@\r\nnext=1", "a.ini", "API key"),
        ("GET /x?access_token=@&y=1", "log", "token"),
        ("fetch('https://x.example/?api_key=@')", "a.js", "API key"),
        ("export MY_TOKEN=@", "a.sh", "token"),
        ("tool --token @ --verbose", "a.sh", "token"),
        ("curl -H \"Authorization: Bearer @\" https://x.example", "a.md", "token"),
        ("//registry.example/:_authToken=@", ".npmrc", "token"),
        ("SESSION_KEY=@", "a.ini", "secret"),
        ("sessionKey: '@'", "a.ts", "secret"),
        ("AUTH=@", "a.ini", "token"),
        ("export DB_AUTH='@'", "a.sh", "token"),
        ("DB_PASS=@", "a.ini", "password"),
        ("\"dbPass\": \"@\"", "a.json", "password"),
        ("MYSQL_PASSWD=@", "a.ini", "password"),
        ("PASSPHRASE=@", "a.ini", "password"),
        ("CREDENTIALS=@", "a.ini", "secret"),
        ("signing-key: @", "a.yml", "secret"),
        ("ENCRYPTION_KEY=@", "a.ini", "secret"),
        ("masterKey = \"@\"", "a.toml", "secret"),
        ("COOKIE_KEY=@", "a.ini", "secret"),
        ("<add key=\"ApiKey\" value=\"@\" />", "web.config", "API key"),
        ("<add key='Smtp:Password' value='@'/>", "app.config", "password"),
        ("<property name=\"password\" value = \"@\"/>", "a.xml", "password"),
        ("  <password>@</password>", "settings.xml", "password"),
        ("<add connectionString=\"Server=s;Password=@;\" />", "web.config", "password"),
    ] {
        for value in [&mixed, &hex] {
            withheld(&text.replace('@', value), Some(name), value, sort);
        }
        shown(&text.replace('@', "${VALUE}"), Some(name));
        shown(&text.replace('@', "changeme"), Some(name));
    }
    for password in ["vK7#pq!Zr2", "T9x_qLw4z", "8dKq-w2Zp@v", "S3cr3tP4ssn19q", "fhBBERAWOJZP7"] {
        withheld(&format!("password = \"{password}\""), Some("a.py"), password, "password");
    }
}

#[test]
fn what_only_looks_like_a_setting_is_shown() {
    let hex = drawn(HEX, 64, 33);
    for text in [
        "password = \"P@ssw0rd1!\"",
        "password = \"<your-password>\"",
        "token = \"xxxxxxxxxxxxxxxxxxxxxxxx\"",
        "api_key = os.environ[\"MY_API_KEY_2\"]",
        "let token = self.tokens.next2().unwrap_or(Token::Eof1);",
        "secret: ${{ secrets.DEPLOY_TOKEN_2 }}",
        "password = getPassword(\"Enter your password 2 times: \")",
        "token_type = \"urn:ietf:params:oauth:token-type:jwt2\"",
        "api_key_id = \"550e8400-e29b-41d4-a716-446655440000\"",
        "token = \"550e8400-e29b-41d4-a716-446655440000\"",
        "secret = \"not_exists_file_1123\"",
        "tokenizer = \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "the token aB3dE5gH7jK9mN1pQ3sT5vX7 is read",
        "- name: height\n  value: aB3dE5gH7jK9mN1pQ3sT5vX7",
        "CODECOV_ID=\"550e8400-e29b-41d4-a716-446655440000\"",
        "\"NextToken\": \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "password: bm90IG15IHJlYWwgcGFzc3dvcmQ=",
        "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        "Authorization: Bearer mytoken123",
        "compass = \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "bypass: aB3dE5gH7jK9mN1pQ3sT5vX7",
        "author = \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "auth_url = \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "session_key_id = \"aB3dE5gH7jK9mN1pQ3sT5vX7\"",
        "AUTH=basic-and-digest-2",
        "password = \"MyP@ssw0rd2024!\"",
        "password = \"yourStrong(!)Passw0rd\"",
        "<add key=\"Password\" value=\"changeme\" />",
        "<add key=\"ApiKey\" value=\"your-api-key-goes-here-1\" />",
        "<add key=\"Password\" value=\"${DB_PASSWORD}\" />",
        "<password>${env.TOKEN_2}</password>",
        "<password>secret</password> and <token>a word</token>",
        "<input name=\"token\" value=\"550e8400-e29b-41d4-a716-446655440000\">",
        "<add key=\"TokenUrl\" value=\"aB3dE5gH7jK9mN1pQ3sT5vX7\" />",
    ] {
        shown(text, Some("README.md"));
        shown(text, None);
    }
    shown(&format!("\"src/token.rs\":\"{hex}\""), Some(".cargo-checksum.json"));
    shown(&format!("checksum = \"{hex}\""), Some("Cargo.lock"));
    // In source code, a value without quotes is an expression.
    shown(&format!("token = {}", drawn(BASE62, 24, 34)), Some("a.py"));
}

#[test]
fn the_values_of_an_environment_go_and_the_harmless_stay() {
    let text = "# a comment\n\
        PORT=8080\nDEBUG=true\nNODE_ENV=production\nEMPTY=\nQUOTED_EMPTY=\"\"\n\
        HOME_DIR=/srv/app\nREDIS=redis://localhost:6379/0\nREF=${OTHER}\nTTL=30s\n\
        DB_PASSWORD=12345678\nNAME=internal thing\nexport KEY='a b' # why\nURL=https://internal.corp/x\r\n\
        PASSWORD_MIN_LENGTH=8\nMULTI=\"one\ntwo\nthree\"\nLAST=letmein";
    let expected = "# a comment\n\
        PORT=8080\nDEBUG=true\nNODE_ENV=production\nEMPTY=\nQUOTED_EMPTY=\"\"\n\
        HOME_DIR=/srv/app\nREDIS=redis://localhost:6379/0\nREF=${OTHER}\nTTL=30s\n\
        DB_PASSWORD=@\nNAME=@\nexport KEY='@' # why\nURL=@\r\n\
        PASSWORD_MIN_LENGTH=8\nMULTI=\"@\n\n\"\nLAST=@"
        .replace('@', "[withheld: .env value]");
    for name in [".env", "app/.env.local", ".env.production", "prod.env", ".ENV", ".envrc"] {
        let redacted = redact(text, Some(name));
        assert_eq!(redacted.text, expected, "{name}");
        assert_eq!(redact(&expected, Some(name)).text, expected);
    }
    for name in [".env.example", ".env.sample", ".env.local.template", ".env.dist", "env", "env.py"]
    {
        shown(text, Some(name));
    }
    // A secret with a known format is reported as that kind, and the whole value is withheld.
    let token = format!("ghp_{}", drawn(BASE62, 36, 41));
    withheld(&format!("T={token}\n"), Some(".env"), &token, "GitHub token");
    let url = format!("postgres://app:{}@db.corp/x", drawn(BASE62, 16, 42));
    withheld(&format!("U={url}\n"), Some(".env"), &url, "password in an address");
}

#[test]
fn passwords_in_addresses_go() {
    let password = drawn(BASE62, 16, 51);
    for text in [
        "postgres://app:@@db.internal.corp:5432/x",
        "git clone https://me:@@github.com/x/y.git",
        "\"redis://:@@cache.corp/0\"",
        "amqp://u:@@localhost/",
    ] {
        let (before, after) = text.split_once('@').unwrap();
        withheld(&format!("{before}{password}{after}"), None, &password, "password in an address");
    }
    for (address, password) in [
        ("postgres://admin:@@host", "S3cr3tP4ssn19q"),
        ("postgresql+psycopg://admin:@@db:5432/x", "w4lrus7tango"),
        ("redis://:@@cache:6379/0", "k3ttle9drum"),
        ("REDIS_URL=rediss://:@@redis", "vK7pqZr2"),
        ("mongodb+srv://app:@@cluster0.x.mongodb.net", "w4lrusTango"),
    ] {
        let text = address.replacen("@@", &format!("{password}@"), 1);
        withheld(&text, None, password, "password in an address");
    }
    for text in [
        "redis://:password@host",
        "redis://:${REDIS_PASSWORD}@redis:6379",
        "redis://:<password>@redis:6379",
        "redis://:changeme@redis:6379",
        "redis://:foobared@redis:6379",
        "redis://:redis123@redis:6379",
        "postgres://user:P@ssw0rd1@db/x",
        "postgres://app:w4lrus7tango@localhost/x",
        "http://user:w4lrus7tango@proxy/",
        "xredis://:k3ttle9drum@cache",
        "postgres://user:password@host/db",
        "postgres://postgres:postgres@localhost/db",
        "https://user:pass@example.com/",
        "https://$USER:$TOKEN@github.com/x",
        "https://user:<token>@github.com/x",
        "https://user:${TOKEN}@github.com/x",
        "https://example.com:8080/a@b",
        "http://[::1]:80/x:y@z",
        "mailto://a:b@c",
        "ssh://git@github.com/x",
    ] {
        shown(text, None);
        shown(text, Some("README.md"));
    }
}

#[test]
fn files_that_hold_passwords_are_known() {
    let password = drawn(BASE62, 12, 61);
    withheld(
        &format!("machine api.corp login me password {password}\n"),
        None,
        &password,
        "netrc password",
    );
    withheld(
        &format!("machine api.corp\n  login me\n  password {password}\n"),
        Some("home/.netrc"),
        &password,
        "netrc password",
    );
    shown("machine host login me password <password>\n", None);
    shown("The login page of a machine asks for your password again.\n", None);
    withheld(
        &format!("h:5432:db:me:{password}\n"),
        Some(".pgpass"),
        &password,
        "database password",
    );
    withheld(
        &format!("me:$apr1${password}\n"),
        Some(".htpasswd"),
        &format!("$apr1${password}"),
        "password hash",
    );
    use base64::Engine;
    let login = base64::engine::general_purpose::STANDARD.encode(format!("me:{password}"));
    withheld(
        &format!("{{\"auths\": {{\"r.corp\": {{\"auth\": \"{login}\"}}}}}}"),
        Some("config.json"),
        &login,
        "registry login",
    );
    withheld(&format!("Authorization: Basic {login}"), None, &login, "login");
}

#[test]
fn the_entries_of_a_secret_of_kubernetes_go() {
    let text = "kind: ConfigMap\ndata:\n  a: plain\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  user: YWRtaW4=\n  pw: \"MWYyZDFlMmU2N2Rm\"\nstringData:\n  conf: |\n    one\n    two\n  tpl: {{ .Values.pw }}\ntype: Opaque\n";
    let shown_text = redact(text, Some("secret.yaml")).text;
    let mark = "[withheld: Kubernetes secret]";
    let expected = text
        .replace("YWRtaW4=", mark)
        .replace("MWYyZDFlMmU2N2Rm", mark)
        .replace("    one", &format!("    {mark}"))
        .replace("    two", &format!("    {mark}"));
    assert_eq!(shown_text, expected);
    shown(&text.replace("kind: Secret", "kind: SealedSecret"), Some("secret.yaml"));
}

#[test]
fn long_values_of_letters_alone_go() {
    for (text, sort) in [
        ("API_KEY=SUEBUUKOLVLTWIXPASBVALIUOJSTKFLF", "API key"),
        ("secret_key = \"ybmwskriqhbjacdtrbgnjtiewbkklemm\"", "secret"),
        ("password = \"OKrsheEOEfwZeAjbsBXAhcMN\"", "password"),
        ("api_key = \"3f2a9c1e-77b4-4d0a-9e11-0b6c5a2d8f47\"", "API key"),
    ] {
        let shown = redact(text, Some("a.ini")).text;
        assert!(shown.contains(&format!("[withheld: {sort}]")), "{shown}");
    }
    for text in [
        "password = \"resetPasswordConfirmationKey\"",
        "id = \"3f2a9c1e-77b4-4d0a-9e11-0b6c5a2d8f47\"",
        "name = \"ybmwskriqhbjacdtrbgnjtiewbkklemm\"",
    ] {
        assert_eq!(redact(text, Some("a.ini")).text, text);
    }
}
