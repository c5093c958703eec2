//! The table of tokens that can be told by their own form.

use super::Sort;
use super::shape::{entropy, is_sample};
use super::tokens::AWS;

/// What characters a token is of, after its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// `0-9a-f`.
    Hex,
    /// `A-Z2-7`.
    Base32,
    /// `0-9A-Za-z`.
    Base62,
    /// `0-9A-Za-z_`.
    Word,
    /// `0-9A-Za-z_-`.
    Url,
    /// `0-9A-Za-z_-` with `.`, `=`, `/` and `+`.
    Wide,
    /// `0-9A-Za-z+/=`, and `%` as addresses write these.
    Base64,
}

impl Alphabet {
    pub(super) fn has(self, byte: u8) -> bool {
        let word = byte.is_ascii_alphanumeric();
        match self {
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Base32 => matches!(byte, b'A'..=b'Z' | b'2'..=b'7'),
            Self::Base62 => word,
            Self::Word => word || byte == b'_',
            Self::Url => word || matches!(byte, b'_' | b'-'),
            Self::Wide => word || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'/' | b'+'),
            Self::Base64 => word || matches!(byte, b'+' | b'/' | b'=' | b'%'),
        }
    }
}

/// How one sort of token is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) prefix: &'static str,
    pub(super) alphabet: Alphabet,
    /// How many characters of the alphabet stand before the prefix, and are part of the secret.
    pub(super) before: usize,
    /// How many characters follow the prefix.
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) sort: Sort,
    /// What must hold of what follows the prefix; None asks that it was drawn at random.
    pub(super) check: Option<fn(&[u8]) -> bool>,
    /// Whether the prefix is part of an address or a setting: it may follow a word, and stays.
    pub(super) shows: bool,
}

impl Form {
    /// How much of the prefix stays.
    pub(super) fn kept(&self) -> usize {
        if self.shows { self.prefix.len() } else { 0 }
    }

    /// Whether its prefix is not met by chance, so that a token is one behind a letter, too. `key-` ends
    /// words, and `1//0` stands in base64.
    pub(super) fn stands_out(&self) -> bool {
        self.prefix.len() >= 4 && !matches!(self.prefix, "key-" | "1//0")
    }
}

const fn exact(
    prefix: &'static str,
    alphabet: Alphabet,
    length: usize,
    sort: &'static str,
) -> Form {
    some(prefix, alphabet, length, length, sort)
}

const fn some(
    prefix: &'static str,
    alphabet: Alphabet,
    least: usize,
    most: usize,
    sort: &'static str,
) -> Form {
    Form { prefix, alphabet, before: 0, least, most, sort: Sort(sort), check: None, shows: false }
}

const fn shown(
    prefix: &'static str,
    alphabet: Alphabet,
    least: usize,
    most: usize,
    sort: &'static str,
) -> Form {
    Form { shows: true, ..some(prefix, alphabet, least, most, sort) }
}

const fn after(before: usize, form: Form) -> Form {
    Form { before, ..form }
}

const fn checked(form: Form, check: fn(&[u8]) -> bool) -> Form {
    Form { check: Some(check), ..form }
}

const fn aws(prefix: &'static str) -> Form {
    let form = Form { sort: AWS, ..exact(prefix, Alphabet::Base32, 16, "") };
    checked(form, |body| entropy(body) >= 2.6 && !is_sample(body))
}

const fn github(prefix: &'static str) -> Form {
    checked(some(prefix, Alphabet::Base62, 36, 255, "GitHub token"), |body| {
        has_checksum(body) || (entropy(body) >= 3.4 && !is_sample(body))
    })
}

const fn gitlab(prefix: &'static str) -> Form {
    some(prefix, Alphabet::Wide, 20, 300, "GitLab token")
}

use Alphabet::{Base62, Base64, Hex, Url, Wide, Word};

pub(super) static FORMS: [Form; 120] = [
    aws("AKIA"),
    aws("ASIA"),
    github("ghp_"),
    github("gho_"),
    github("ghu_"),
    github("ghs_"),
    github("ghr_"),
    some("github_pat_", Word, 60, 255, "GitHub token"),
    gitlab("glpat-"),
    gitlab("gldt-"),
    gitlab("glrt-"),
    gitlab("glrtr-"),
    gitlab("glptt-"),
    gitlab("glcbt-"),
    gitlab("glsoat-"),
    gitlab("gloas-"),
    gitlab("glft-"),
    gitlab("glimt-"),
    gitlab("glagent-"),
    gitlab("glffct-"),
    some("xoxb-", Url, 24, 300, "Slack token"),
    some("xoxp-", Url, 24, 300, "Slack token"),
    some("xoxa-", Url, 24, 300, "Slack token"),
    some("xoxr-", Url, 24, 300, "Slack token"),
    some("xoxs-", Url, 24, 300, "Slack token"),
    some("xoxc-", Url, 24, 300, "Slack token"),
    some("xoxd-", Base64, 24, 300, "Slack token"),
    some("xoxe-", Url, 24, 300, "Slack token"),
    some("xoxe.xox", Wide, 24, 300, "Slack token"),
    some("xapp-1-", Url, 24, 300, "Slack token"),
    shown("hooks.slack.com/services/", Wide, 30, 120, "Slack webhook"),
    shown("hooks.slack.com/workflows/", Wide, 30, 160, "Slack webhook"),
    shown("hooks.slack.com/triggers/", Wide, 30, 160, "Slack webhook"),
    shown("/api/webhooks/", Wide, 78, 160, "webhook"),
    shown("webhook.office.com/webhookb2/", Wide, 60, 300, "Teams webhook"),
    some("sk_live_", Base62, 16, 255, "Stripe key"),
    some("sk_test_", Base62, 16, 255, "Stripe key"),
    some("rk_live_", Base62, 16, 255, "Stripe key"),
    some("rk_test_", Base62, 16, 255, "Stripe key"),
    some("whsec_", Base64, 32, 100, "webhook secret"),
    exact("AIza", Url, 35, "Google API key"),
    exact("GOCSPX-", Url, 28, "Google OAuth secret"),
    some("ya29.", Wide, 30, 2048, "Google OAuth token"),
    some("1//0", Url, 40, 300, "Google OAuth token"),
    shown("AccountKey=", Base64, 80, 100, "Azure storage key"),
    shown("SharedAccessKey=", Base64, 40, 100, "Azure access key"),
    shown("&sig=", Base64, 43, 100, "Azure signature"),
    shown("?sig=", Base64, 43, 100, "Azure signature"),
    some("sk-ant-", Url, 32, 300, "Anthropic key"),
    some("sk-proj-", Url, 32, 300, "OpenAI key"),
    some("sk-svcacct-", Url, 32, 300, "OpenAI key"),
    some("sk-admin-", Url, 32, 300, "OpenAI key"),
    exact("sk-or-v1-", Hex, 64, "OpenRouter key"),
    exact("sk-", Hex, 32, "API key"),
    exact("sk-", Base62, 48, "OpenAI key"),
    exact("hf_", Base62, 34, "Hugging Face token"),
    exact("api_org_", Base62, 34, "Hugging Face token"),
    exact("gsk_", Base62, 52, "Groq key"),
    exact("xai-", Base62, 80, "xAI key"),
    exact("pplx-", Base62, 48, "Perplexity key"),
    exact("r8_", Base62, 37, "Replicate token"),
    exact("npm_", Base62, 36, "npm token"),
    some("pypi-AgEI", Url, 50, 1000, "PyPI token"),
    some("pypi-AgEN", Url, 50, 1000, "PyPI token"),
    exact("cio", Base62, 32, "crates.io token"),
    exact("rubygems_", Hex, 48, "RubyGems key"),
    exact("oy2", Base62, 43, "NuGet key"),
    some("dckr_pat_", Url, 27, 40, "Docker Hub token"),
    some("dckr_oat_", Url, 27, 60, "Docker Hub token"),
    exact("dop_v1_", Hex, 64, "DigitalOcean token"),
    exact("doo_v1_", Hex, 64, "DigitalOcean token"),
    exact("dor_v1_", Hex, 64, "DigitalOcean token"),
    some("HRKU-AA", Url, 50, 80, "Heroku key"),
    some("SG.", Wide, 60, 70, "SendGrid key"),
    exact("SK", Hex, 32, "Twilio key"),
    exact("key-", Hex, 32, "Mailgun key"),
    exact("shpat_", Hex, 32, "Shopify token"),
    exact("shpca_", Hex, 32, "Shopify token"),
    exact("shppa_", Hex, 32, "Shopify token"),
    exact("shpss_", Hex, 32, "Shopify secret"),
    exact("sq0csp-", Url, 43, "Square secret"),
    exact("sq0atp-", Url, 22, "Square token"),
    some("PMAK-", Url, 59, 59, "Postman key"),
    exact("NRAK-", Base62, 27, "New Relic key"),
    some("glsa_", Word, 41, 41, "Grafana token"),
    some("glc_eyJ", Base64, 32, 400, "Grafana token"),
    some("sntrys_eyJ", Wide, 32, 400, "Sentry token"),
    exact("sntryu_", Hex, 64, "Sentry token"),
    exact("lin_api_", Base62, 40, "Linear key"),
    some("ntn_", Base62, 43, 60, "Notion token"),
    some("ATATT3xFfGF0", Wide, 100, 300, "Atlassian token"),
    some("figd_", Url, 38, 60, "Figma token"),
    exact("dapi", Hex, 32, "Databricks token"),
    some("dp.pt.", Base62, 40, 44, "Doppler token"),
    some("fm2_", Base64, 100, 2000, "Fly token"),
    some("pscale_tkn_", Wide, 32, 64, "PlanetScale token"),
    some("pscale_pw_", Wide, 32, 64, "PlanetScale password"),
    exact("sbp_", Hex, 40, "Supabase token"),
    some("sb_secret_", Url, 24, 64, "Supabase key"),
    some("tskey-", Url, 24, 100, "Tailscale key"),
    some("hvs.", Url, 24, 300, "Vault token"),
    some("hvb.", Url, 100, 300, "Vault token"),
    some("AGE-SECRET-KEY-1", Base62, 58, 58, "age key"),
    some("ops_eyJ", Url, 200, 2000, "1Password token"),
    exact("pul-", Hex, 40, "Pulumi token"),
    exact("AKCp", Base62, 69, "Artifactory key"),
    exact("bkua_", Hex, 40, "Buildkite token"),
    some("CCIPAT_", Word, 40, 80, "CircleCI token"),
    aws("ABIA"),
    after(14, some(".atlasv1.", Url, 60, 70, "Terraform token")),
    after(4, some("Q~", Wide, 31, 34, "Azure client secret")),
    some("sl.B", Url, 60, 300, "Dropbox token"),
    some("sl.u.", Url, 60, 2000, "Dropbox token"),
    some("lsv2_pt_", Word, 40, 60, "LangSmith key"),
    some("lsv2_sk_", Word, 40, 60, "LangSmith key"),
    exact("sqp_", Hex, 40, "SonarQube token"),
    exact("squ_", Hex, 40, "SonarQube token"),
    exact("sqa_", Hex, 40, "SonarQube token"),
    exact("secret_", Base62, 43, "Notion token"),
    after(11, some(":APA91b", Url, 120, 150, "Firebase key")),
];

/// What follows the number of a bot.
pub(super) static OF_TELEGRAM: Form = exact(":AA", Url, 33, "Telegram bot token");

/// Whether the last six characters are the checksum of the others, as in GitHub's tokens: CRC32 in
/// base 62. That tells one from any other text; one without may be of a later make.
fn has_checksum(body: &[u8]) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some((drawn, sum)) = body.split_last_chunk::<6>() else { return false };
    let mut left = crc32(drawn);
    sum.iter().rev().all(|digit| {
        let expected = DIGITS[(left % 62) as usize];
        left /= 62;
        expected == *digit
    })
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_every_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
