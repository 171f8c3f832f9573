//! Merges an adapter of PEFT into the weights that it was trained for.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::change::Change;
use crate::commands::edit::tree::{Matched, New, expanded};
use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Of, Result};
use crate::input::shown;
use crate::lora::{Delta, Factor};
use crate::node::{Node, Payload};
use crate::paths::Named;
use crate::text::quoted;
use crate::written::Written;

const CONFIG: &str = "adapter_config.json";

/// The files of matrices in the directory of an adapter, the preferred one first.
const MATRICES: [&str; 2] = ["adapter_model.safetensors", "adapter_model.bin"];

/// What PEFT writes in front of the names of modules.
const PREFIX: &str = "base_model.model.";

/// An opened adapter.
pub struct Adapter {
    pub document: Document,
    pub config: Config,
}

/// The part of PEFT's configuration that decides what is added to the weights.
#[derive(Deserialize)]
pub struct Config {
    peft_type: String,
    r: u32,
    lora_alpha: f64,
    #[serde(default)]
    fan_in_fan_out: Option<bool>,
    #[serde(default)]
    use_rslora: Option<bool>,
    #[serde(default)]
    rank_pattern: Option<Map<String, Json>>,
    #[serde(default)]
    alpha_pattern: Option<Map<String, Json>>,
    #[serde(flatten)]
    others: Map<String, Json>,
}

/// Options of a configuration with which the weights are not the sum of a weight and a product.
const REFUSED: [&str; 6] = [
    "use_dora",
    "use_qalora",
    "use_bdlora",
    "arrow_config",
    "layer_replication",
    "alora_invocation_tokens",
];

impl Adapter {
    /// Opens an adapter: its directory, or the file of its matrices.
    ///
    /// # Errors
    /// If a file cannot be read, or the adapter is of another kind than LoRA.
    pub fn open(path: &Path) -> Result<Self> {
        let matrices = if path.is_dir() { in_directory(path)? } else { path.to_owned() };
        let of = matrices.with_file_name(CONFIG);
        let text = fs::read(&of).of(shown(&of))?;
        let config: Config = serde_json::from_slice(&text)
            .map_err(|error| Failure::new(error.to_string()))
            .of(shown(&of))?;
        config.check().of(shown(&of))?;
        let document = Document::open(&matrices, &Reading::default())?;
        document.check_copy(false)?;
        Ok(Self { document, config })
    }
}

fn in_directory(directory: &Path) -> Result<PathBuf> {
    let mut files = MATRICES.iter().map(|name| directory.join(name));
    files.find(|file| file.is_file()).ok_or_else(|| {
        let what = format!("there is no {} in this directory", MATRICES.join(" and no "));
        Failure::new(what).of(&shown(directory))
    })
}

impl Config {
    fn check(&self) -> Result<()> {
        if self.peft_type != "LORA" {
            let found = quoted(&self.peft_type);
            return Err(Failure::new(format!("expected the peft_type \"LORA\", found {found}")));
        }
        let is_off = |value: &Json| match value {
            Json::Null | Json::Bool(false) => true,
            Json::Array(items) => items.is_empty(),
            _ => false,
        };
        let mut refused = REFUSED
            .iter()
            .filter(|name| self.others.get(**name).is_some_and(|value| !is_off(value)));
        match refused.next() {
            Some(name) => Err(Failure::new(format!("{name} is not supported"))),
            None => Ok(()),
        }
    }

    /// Returns the factor of the product that is added to the weight of a module, if the product has this rank.
    fn scale(&self, module: &str, rank: usize) -> Result<f32> {
        let stated = of_pattern(self.rank_pattern.as_ref(), module)?;
        let stated = stated.unwrap_or(f64::from(self.r));
        let alpha = of_pattern(self.alpha_pattern.as_ref(), module)?.unwrap_or(self.lora_alpha);
        #[allow(clippy::cast_precision_loss)]
        let found = rank as f64;
        #[allow(clippy::float_cmp)]
        if found != stated || rank == 0 {
            let what = format!("{CONFIG} states the rank {stated}, found matrices of rank {rank}");
            return Err(Failure::new(what));
        }
        let is_stabilised = self.use_rslora.unwrap_or(false);
        // PEFT computes this in f64, and multiplies numbers of f32 with it.
        #[allow(clippy::cast_possible_truncation)]
        let scale = (alpha / if is_stabilised { found.sqrt() } else { found }) as f32;
        Ok(scale)
    }
}

/// Returns the number of the first pattern that matches the end of a module's name, as PEFT does: patterns are regular
/// expressions.
fn of_pattern(patterns: Option<&Map<String, Json>>, module: &str) -> Result<Option<f64>> {
    for (pattern, number) in patterns.into_iter().flatten() {
        let wrong = |what: String| Failure::new(format!("{CONFIG}: {}: {what}", quoted(pattern)));
        let regex = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$"));
        if regex.map_err(|error| wrong(error.to_string()))?.is_match(module) {
            let number = number.as_f64();
            return number.map(Some).ok_or_else(|| wrong("expected a number".into()));
        }
    }
    Ok(None)
}

/// What a tensor of an adapter is, by its name.
struct Part<'n> {
    /// The name of the module that has the weight. Of a whole tensor, the name of the tensor.
    module: String,
    role: Role,
    /// The name of the adapter. PEFT leaves it out of the files that it writes, but not of a model's `state_dict`.
    adapter: Option<&'n str>,
}

enum Role {
    Matrix {
        is_a: bool,
        is_embedding: bool,
    },
    /// A tensor that was trained as a whole.
    Whole,
}

impl<'n> Part<'n> {
    /// `None` if the part is not supported.
    fn of(name: &'n str) -> Option<Self> {
        const SAVED: &str = ".modules_to_save.";
        let Some((module, kind)) = name.split_once(".lora_") else {
            let Some((module, rest)) = name.split_once(SAVED) else {
                return Some(Self { module: name.to_owned(), role: Role::Whole, adapter: None });
            };
            let (adapter, tensor) = rest.split_once('.')?;
            let module = format!("{module}.{tensor}");
            return Some(Self { module, role: Role::Whole, adapter: Some(adapter) });
        };
        let steps: Vec<&str> = kind.split('.').collect();
        let (is_a, is_embedding, adapter) = match steps[..] {
            ["A", ref adapter @ .., "weight"] => (true, false, adapter),
            ["B", ref adapter @ .., "weight"] => (false, false, adapter),
            ["embedding_A", ref adapter @ ..] => (true, true, adapter),
            ["embedding_B", ref adapter @ ..] => (false, true, adapter),
            _ => return None,
        };
        let adapter = match adapter {
            [] => None,
            [adapter] => Some(*adapter),
            _ => return None,
        };
        let role = Role::Matrix { is_a, is_embedding };
        Some(Self { module: module.to_owned(), role, adapter })
    }
}

/// The matrices of an adapter for one weight, and the name of the first that was found.
struct Pair<'a> {
    name: String,
    a: Option<Factor<'a>>,
    b: Option<Factor<'a>>,
    is_embedding: bool,
}

/// Returns a value whose weights have the adapter in them. All else of the value stays.
///
/// # Errors
/// If a tensor of the adapter has no counterpart in the value, does not fit, or is of a kind that is not supported.
pub fn merged<'a>(
    base: &'a Section<'a>,
    adapter: &'a Section<'a>,
    config: &Config,
) -> Result<Written<'a>> {
    let file = adapter.file;
    let mut base = Base { section: base, matched: Matched::default() };
    let (mut pairs, mut modules): (Vec<(String, Pair<'a>)>, _) = (Vec::new(), HashMap::new());
    let mut only = None::<String>;
    adapter.each_tensor(&mut |Named { path, node, .. }| {
        let name = path.strip_prefix(PREFIX).unwrap_or(&path);
        let Some(Part { module, role, adapter: said }) = Part::of(name) else {
            let what = "this part of an adapter is not supported, only matrices of linear layers and embeddings";
            return Err(Failure::new(what)).of(quoted(&path)).of(file);
        };
        if let Some(said) = said {
            let known = only.get_or_insert_with(|| said.to_owned());
            if known != said {
                let (one, other) = (quoted(known), quoted(said));
                let what = format!("the file holds several adapters, {one} and {other}");
                return Err(Failure::new(what)).of(file);
            }
        }
        let Role::Matrix { is_a, is_embedding } = role else {
            return base.replace(&module, (adapter, node)).of(quoted(&path)).of(file);
        };
        let factor = Factor::new(adapter, node).of(quoted(&path)).of(file)?;
        let at = *modules.entry((module.clone(), is_embedding)).or_insert(pairs.len());
        if at == pairs.len() {
            let pair = Pair { name: path.clone(), a: None, b: None, is_embedding };
            pairs.push((module, pair));
        }
        let pair = pairs.get_mut(at).map(|(_, pair)| pair);
        let place = pair.map(|pair| if is_a { &mut pair.a } else { &mut pair.b });
        match place.and_then(|place| place.replace(factor)) {
            None => Ok(()),
            // With the prefix and without it.
            Some(_) => Err(Failure::new("the adapter has two of it")).of(quoted(&path)).of(file),
        }
    })?;
    for (module, pair) in pairs {
        base.add(&module, &pair, config).of(quoted(&pair.name)).of(file)?;
    }
    let Base { section, matched } = base;
    if matched.changed.is_empty() {
        return Err(Failure::new("the adapter has no matrices")).of(file);
    }
    matched.check(section).of(section.file)?;
    let merged = expanded(section, &section.root, &matched).of(section.file)?;
    merged.ok_or_else(|| Failure::new("there is no weight to change"))
}

/// The value that an adapter is merged into, and its changes.
struct Base<'a> {
    section: &'a Section<'a>,
    matched: Matched<'a>,
}

impl<'a> Base<'a> {
    /// Adds the product of two matrices to the weight of a module.
    fn add(&mut self, module: &str, pair: &Pair<'a>, config: &Config) -> Result<()> {
        let (Some(a), Some(b)) = (pair.a, pair.b) else {
            let other = if pair.a.is_some() { "B" } else { "A" };
            return Err(Failure::new(format!("the adapter has no matrix {other} for it")));
        };
        let [rank, _] = a.shape();
        let scale = config.scale(module, rank)?;
        // PEFT stores B · A of an embedding with its axes exchanged, as the weights of some layers are.
        let (left, right) = if pair.is_embedding || config.fan_in_fan_out.unwrap_or(false) {
            (a.transposed(), b.transposed())
        } else {
            (b, a)
        };
        let (target, payload) = self.target(&format!("{module}.weight"))?;
        let delta = Delta::new(payload, left, right, scale)?;
        let change = Some(Change::Add(Rc::new(delta)));
        self.change(target, New { section: self.section, node: target, change })
    }

    /// Puts a tensor that was trained as a whole in place of the one that the base has, in the dtype of that one.
    fn replace(&mut self, name: &str, new: (&'a Section<'a>, &'a Node)) -> Result<()> {
        let (target, payload) = self.target(name)?;
        let from = new.1.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        if from.shape != payload.shape {
            let (found, expected) = (from.label(), payload.label());
            return Err(Failure::new(format!(
                "{found} does not fit the tensor, which is {expected}"
            )));
        }
        let change = (from.dtype != payload.dtype).then(|| Change::Cast(payload.dtype.clone()));
        self.change(target, New { section: new.0, node: new.1, change })
    }

    /// Returns the tensor of this name.
    fn target(&self, name: &str) -> Result<(&'a Node, &'a Payload)> {
        let section: &'a Section<'a> = self.section;
        let node = section.find(name).of(section.file)?;
        let payload = node.payload().filter(|payload| payload.is_listed());
        let payload = payload.ok_or_else(|| {
            Failure::new(format!("{}: {} is not a tensor", section.file, quoted(name)))
        })?;
        Ok((node, payload))
    }

    fn change(&mut self, target: &Node, new: New<'a>) -> Result<()> {
        match self.matched.changed.insert(target.range.start, new) {
            None => Ok(()),
            Some(_) => Err(Failure::new("two parts of the adapter change the same weight")),
        }
    }
}
