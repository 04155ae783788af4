//! Routing of requests to answers, after the guard.

use crate::Shared;
use crate::guard::random;
use crate::http::{self, HttpError, HttpResponse, Request, refusal};
use crate::language::LanguageServer;
use crate::{events, interface, page};
use serde_json::json;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Interval of checks that an open page still exists.
const BEAT: Duration = Duration::from_secs(5);

/// Serves one connection.
pub(crate) fn serve(shared: &Arc<Shared>, mut stream: TcpStream) {
    let answer = match http::read(&mut stream) {
        Ok(None) => return,
        Err(refused) => refused.into(),
        Ok(Some(request)) => match shared.guard.admit(&request) {
            Ok("api/events") if request.method == "GET" => return listen(shared, &request, stream),
            Ok(path) => answer(shared, &request, path).unwrap_or_else(HttpResponse::from),
            Err(refused) => refused.into(),
        },
    };
    http::write(stream, &answer);
}

fn answer(shared: &Arc<Shared>, request: &Request, path: &str) -> Result<HttpResponse, HttpError> {
    let missing = |what: &str| HttpError(400, format!("`{path}` needs {what}"));
    let query = |name: &str| request.query_value(name).ok_or_else(|| missing(&format!("`{name}`")));
    let number =
        |name: &str| query(name)?.parse().map_err(|_| missing(&format!("`{name}` as a number")));
    let value = match (request.method.as_str(), path) {
        ("GET", "") => {
            return random()
                .map(|nonce| page::frame(&nonce))
                .map_err(|e| HttpError(500, e.to_string()));
        }
        ("GET", "studio.js") => return Ok(HttpResponse::text("text/javascript", page::SCRIPT)),
        ("GET", "studio.css") => return Ok(HttpResponse::text("text/css", page::STYLE)),
        ("GET", "api/files") => shared.folder.list(),
        ("GET", "api/file") => json!({ "text": shared.folder.read(&query("path")?)? }),
        ("POST", "api/file") => {
            let body = request.json()?;
            let text = body["text"].as_str().ok_or_else(|| missing("`text`"))?;
            shared.folder.write(&query("path")?, text, body["before"].as_str())?;
            json!({})
        }
        ("GET", "api/runs") => shared.runs.list(),
        ("GET", "api/run") => shared.runs.get(number("id")?)?,
        ("GET", "api/parameters") => shared.runs.parameters(&query("model")?, &shared.folder)?,
        ("POST", "api/interface") => {
            let body = request.json()?;
            interface::problems(body["text"].as_str().ok_or_else(|| missing("`text`"))?)
        }
        ("GET", "api/report") => shared.runs.report(number("id")?)?,
        ("POST", "api/run") => shared.runs.start(&request.json()?, &shared.folder)?,
        ("POST", "api/stop") => {
            request.json()?;
            shared.runs.stop(number("id")?)?
        }
        ("POST", "api/walk") => shared.walks.start(&request.json()?, &shared.folder)?,
        ("POST", "api/ask") => shared.walks.ask(number("walk")?, &request.json()?)?,
        ("POST", "api/leave") => {
            request.json()?;
            shared.walks.close(number("walk")?);
            json!({})
        }
        ("POST", "api/language") => {
            let languages = shared.languages.lock().unwrap_or_else(PoisonError::into_inner);
            let language = languages
                .get(&query("page")?)
                .ok_or_else(|| HttpError(404, "this page has no event stream".into()))?;
            language.send(request.json()?).map_err(|why| HttpError(400, why))?;
            json!({})
        }
        _ => return refusal(404, format!("there is no `{path}`")),
    };
    Ok(HttpResponse::json(&value))
}

/// Sends events to a page until it is closed.
fn listen(shared: &Arc<Shared>, request: &Request, mut stream: TcpStream) {
    let name = request.query_value("page").unwrap_or_default();
    let plain = (8..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
    let joined = if plain { shared.hub.join(&name) } else { None };
    let Some((sender, receiver)) = joined else {
        return http::write(
            stream,
            &HttpError(429, "there are too many pages, or this page has no unique name".into())
                .into(),
        );
    };
    let language = LanguageServer::start(&shared.folder, sender);
    let languages = || shared.languages.lock().unwrap_or_else(PoisonError::into_inner);
    let served = language.map(|language| languages().insert(name.clone(), language)).is_ok();
    let hello = json!({ "runs": shared.runs.list(), "language": served });
    let head = http::head(200, "text/event-stream", None);
    let _ = stream.set_write_timeout(Some(BEAT));
    let mut text = format!("{head}\r\n{}", events::line("hello", &hello));
    loop {
        if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() {
            break;
        }
        text = match receiver.recv_timeout(BEAT) {
            Ok(text) => text,
            // A comment, which the page ignores: writing it detects a closed connection.
            Err(RecvTimeoutError::Timeout) => ": \n\n".into(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
    }
    languages().remove(&name);
    shared.hub.leave(&name);
}
