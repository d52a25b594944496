//! Vectors from an embeddings endpoint (`POST …/embeddings`, as OpenAI and
//! Ollama speak it).

use crate::pain::AgentPain;
use crate::provider::{CallLimits, Endpoint, read_bounded};
use crate::tool::ToolSet;
use serde::Deserialize;
use serde_json::json;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

const BATCH: usize = 64;
const MAX_ANSWER: usize = 32 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where vectors come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// The address before `/embeddings`.
    pub base_url: String,
    /// Which model.
    pub model: String,
    /// The environment variable with the key.
    #[serde(default)]
    pub key_env: Option<String>,
}

/// An embeddings endpoint, with the vectors of the tools it has embedded.
pub struct EmbeddingsEndpoint {
    endpoint: Endpoint,
    model: String,
    tools: RwLock<Option<Arc<Embedded>>>,
}

struct Embedded {
    version: u64,
    vectors: Vec<(String, Vec<f32>)>,
}

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingsEndpoint {
    /// Makes the endpoint. `env` looks up variables.
    pub fn new(
        config: &EmbeddingsConfig,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, AgentPain> {
        let mut endpoint = Endpoint::new(&config.base_url, CallLimits::default())?;
        if let Some(variable) = &config.key_env {
            let key = env(variable).ok_or_else(|| {
                AgentPain::Config(format!("no key for embeddings: set {variable}"))
            })?;
            endpoint = endpoint.secret("authorization", &format!("Bearer {key}"))?;
        }
        Ok(Self {
            endpoint,
            model: config.model.clone(),
            tools: RwLock::default(),
        })
    }

    pub(super) async fn rank(
        &self,
        set: &ToolSet,
        query: &str,
        count: usize,
    ) -> Result<Vec<String>, AgentPain> {
        let tools = self.tools(set).await?;
        let query = crate::pain::excerpt(query, 4000).to_owned();
        let query = self.embed(&[query]).await?.pop().unwrap_or_default();
        let near = |vector: &[f32]| vector.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
        let mut scored: Vec<(f32, &String)> = tools
            .vectors
            .iter()
            .map(|(name, vector)| (near(vector), name))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        Ok(scored
            .into_iter()
            .take(count)
            .map(|(_, name)| name.clone())
            .collect())
    }

    async fn tools(&self, set: &ToolSet) -> Result<Arc<Embedded>, AgentPain> {
        let known = self
            .tools
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(known) = known.filter(|known| known.version == set.version()) {
            return Ok(known);
        }
        let specs: Vec<_> = set.iter().map(|tool| Arc::clone(tool.spec())).collect();
        let mut vectors = Vec::with_capacity(specs.len());
        for batch in specs.chunks(BATCH) {
            let texts: Vec<String> = batch
                .iter()
                .map(|spec| format!("{}: {}", spec.name, spec.description))
                .collect();
            let names = batch.iter().map(|spec| spec.name.clone());
            vectors.extend(names.zip(self.embed(&texts).await?));
        }
        let embedded = Arc::new(Embedded {
            version: set.version(),
            vectors,
        });
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&embedded));
        Ok(embedded)
    }

    /// Vectors of length one, in the order of the texts.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, AgentPain> {
        let body = json!({ "model": self.model, "input": texts }).to_string();
        let ask = async {
            let response = self.endpoint.post("/embeddings", body.into()).await?;
            read_bounded(response, MAX_ANSWER).await
        };
        let asked = tokio::time::timeout(TIMEOUT, ask).await;
        let (bytes, _) = asked.map_err(|_| AgentPain::Timeout(TIMEOUT))??;
        let answer: EmbeddingsResponse = serde_json::from_slice(&bytes)
            .map_err(|error| AgentPain::unreadable(error, &String::from_utf8_lossy(&bytes)))?;
        let mut vectors = vec![Vec::new(); texts.len()];
        for row in answer.data {
            if let Some(vector) = vectors.get_mut(row.index) {
                let length = row
                    .embedding
                    .iter()
                    .map(|x| x * x)
                    .sum::<f32>()
                    .sqrt()
                    .max(1e-12);
                *vector = row.embedding.iter().map(|x| x / length).collect();
            }
        }
        match vectors.iter().any(Vec::is_empty) {
            true => Err(AgentPain::unreadable("vectors are missing", "")),
            false => Ok(vectors),
        }
    }
}
