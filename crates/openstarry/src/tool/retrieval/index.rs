//! Sparse vectors of the tools, and their nearness to a query.

use super::words::features;
use crate::tool::ToolSpec;
use std::collections::HashMap;

/// Where a feature of a tool comes from decides its weight.
const NAME: f32 = 1.6;
const DESCRIPTION: f32 = 1.0;
const PARAMETERS: f32 = 0.3;
const MAX_QUERY: usize = 4000;

/// An index over one version of the tools.
#[derive(Debug, Default)]
pub struct Index {
    names: Vec<String>,
    /// For each feature, the tools that have it and how strongly.
    postings: HashMap<u64, Vec<(u32, f32)>>,
    rarity: HashMap<u64, f32>,
}

impl Index {
    /// Builds the index.
    pub fn new<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let mut names = Vec::new();
        let mut vectors: Vec<HashMap<u64, f32>> = Vec::new();
        for spec in specs {
            names.push(spec.name.clone());
            vectors.push(vector(spec));
        }
        let mut rarity: HashMap<u64, f32> = HashMap::new();
        for vector in &vectors {
            for feature in vector.keys() {
                *rarity.entry(*feature).or_default() += 1.0;
            }
        }
        let count = vectors.len() as f32;
        for seen in rarity.values_mut() {
            *seen = (1.0 + count / *seen).ln();
        }
        let mut postings: HashMap<u64, Vec<(u32, f32)>> = HashMap::new();
        for (at, vector) in vectors.iter().enumerate() {
            let weigh = |(feature, weight): (&u64, &f32)| (*feature, weight * rarity[feature]);
            let weighed: Vec<(u64, f32)> = vector.iter().map(weigh).collect();
            let length = weighed
                .iter()
                .map(|(_, w)| w * w)
                .sum::<f32>()
                .sqrt()
                .max(1e-6);
            for (feature, weight) in weighed {
                let posting = (at as u32, weight / length);
                postings.entry(feature).or_default().push(posting);
            }
        }
        Self {
            names,
            postings,
            rarity,
        }
    }

    /// The names of up to `count` tools, the nearest first. Tools that share
    /// nothing with the query are left out.
    pub fn rank(&self, query: &str, count: usize) -> Vec<String> {
        let mut wanted: HashMap<u64, f32> = HashMap::new();
        for (feature, weight) in features(crate::pain::excerpt(query, MAX_QUERY)) {
            *wanted.entry(feature).or_default() += weight;
        }
        let mut scores = vec![0.0f32; self.names.len()];
        for (feature, weight) in &wanted {
            let (Some(rarity), Some(tools)) =
                (self.rarity.get(feature), self.postings.get(feature))
            else {
                continue;
            };
            let weight = weight.sqrt() * rarity;
            for (tool, strength) in tools {
                scores[*tool as usize] += weight * strength;
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        let nearer = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        if order.len() > count && count > 0 {
            order.select_nth_unstable_by(count - 1, nearer);
        }
        order.truncate(count);
        order.sort_unstable_by(nearer);
        order.into_iter().map(|at| self.names[at].clone()).collect()
    }
}

fn vector(spec: &ToolSpec) -> HashMap<u64, f32> {
    let mut vector = HashMap::new();
    let mut take = |text: &str, strength: f32| {
        for (feature, weight) in features(text) {
            let old: &mut f32 = vector.entry(feature).or_default();
            *old = old.max(weight * strength);
        }
    };
    if let Some(properties) = spec
        .parameters
        .get("properties")
        .and_then(|p| p.as_object())
    {
        for (name, property) in properties {
            take(name, PARAMETERS);
            if let Some(text) = property.get("description").and_then(|text| text.as_str()) {
                take(text, PARAMETERS);
            }
        }
    }
    take(&spec.description, DESCRIPTION);
    take(&spec.name, NAME);
    vector
}
