//! Results of `verify`, for all kinds of certificates: as text and as JSON.
//!
//! In: the answer of a checker, the claim of the certificate, and the figures of the check. Out:
//! one form for safety, formulas, and conformance. Invariant: a certificate that is not proved has
//! a reason.

use super::{print, print_object, verdict_word};
use crate::args::Format;
use mu_base::Diagnostic;
use serde_json::{Value, json};

/// Part of a result: lines of text, each with its end, and keys of the JSON object.
pub(crate) struct ResultPart {
    pub(crate) text: String,
    pub(crate) object: Value,
}

/// Result of the check of a certificate.
pub(crate) struct CertificateReport {
    /// `proved`, `refused`, or `unknown`.
    pub(crate) verdict: &'static str,
    /// The claim.
    pub(crate) claim: ResultPart,
    /// The figures of the check, or the reason why the certificate is not proved.
    pub(crate) check: Result<ResultPart, String>,
    /// Time of the check.
    pub(crate) seconds: f64,
}

impl CertificateReport {
    /// Prints the result. Errors: see [`print()`].
    pub(crate) fn print(self, format: Format) -> Result<(), Diagnostic> {
        let Self { verdict, claim, check, seconds } = self;
        match format {
            Format::Text => {
                let check = check.map_or_else(
                    |why| format!("why            {why}\n"),
                    |described| described.text,
                );
                print(&format!(
                    "certificate    {verdict}\n{}{check}seconds        {seconds:.3}\n",
                    claim.text
                ))
            }
            Format::Json => {
                let mut object = json!({
                    "verdict": verdict_word(verdict), "certificate": verdict, "seconds": seconds,
                });
                let check = check.map_or_else(|why| json!({ "why": why }), |d| d.object);
                for part in [claim.object, check] {
                    for (key, value) in part.as_object().into_iter().flatten() {
                        object[key] = value.clone();
                    }
                }
                print_object(object)
            }
        }
    }
}
