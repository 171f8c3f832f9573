//! The save-game as owned values.

use std::collections::{BTreeMap, HashMap};

#[derive(
    Clone,
    Copy,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum Mode {
    Survival,
    Creative,
    Adventure,
    Spectator,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum Effect {
    Plain,
    Burning(f32),
    Poisoned { strength: u8, seconds: f32 },
    Enchanted(String, u16),
}

/// Items contain items; rkyv needs explicit bounds for such a recursive type.
#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
#[rkyv(serialize_bounds(
    __S: rkyv::ser::Writer + rkyv::ser::Allocator,
    __S::Error: rkyv::rancor::Source,
))]
#[rkyv(deserialize_bounds(__D::Error: rkyv::rancor::Source))]
#[rkyv(bytecheck(bounds(
    __C: rkyv::validation::ArchiveContext,
    __C::Error: rkyv::rancor::Source,
)))]
pub struct Item {
    pub id: String,
    pub count: i8,
    pub slot: u8,
    pub damage: Option<u16>,
    pub effects: Vec<Effect>,
    #[rkyv(omit_bounds)]
    pub contents: Option<Vec<Item>>,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Abilities {
    pub walk_speed: f32,
    pub fly_speed: f32,
    pub may_fly: bool,
    pub flying: bool,
    pub invulnerable: bool,
    pub may_build: bool,
    pub instabuild: bool,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Entity {
    pub id: String,
    pub position: (f64, f64, f64),
    pub motion: (f64, f64, f64),
    pub rotation: (f32, f32),
    pub fall_distance: f32,
    pub fire: i16,
    pub air: i16,
    pub on_ground: bool,
    pub uuid: [u32; 4],
    pub custom_name: Option<String>,
    pub health: f32,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub enum Goal {
    Rest,
    Reach((i32, i32, i32)),
    Collect { item: String, count: u32 },
    Defeat { kind: String, weapon: Option<Item> },
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Quest {
    pub title: String,
    pub goals: Vec<Goal>,
    pub reward: Option<Option<Item>>,
    pub finished: Option<u64>,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Player {
    pub mode: Mode,
    pub previous_mode: Option<Mode>,
    pub score: i64,
    pub dimension: String,
    pub selected: Item,
    pub selected_slot: u32,
    pub spawn: Option<(i64, i64, i64)>,
    pub food_level: u32,
    pub food_saturation: f32,
    pub xp_level: i32,
    pub xp_part: f32,
    pub inventory: Vec<Item>,
    pub ender_chest: Vec<Item>,
    pub abilities: Abilities,
    pub vehicle: Option<([u32; 4], Entity)>,
    pub left_shoulder: Option<Entity>,
    pub right_shoulder: Option<Entity>,
    pub recipes: Vec<String>,
    pub quests: BTreeMap<String, Quest>,
    pub statistics: BTreeMap<String, u64>,
    pub visited: HashMap<u32, u16>,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bincode::Encode,
    bincode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct SaveGame {
    pub seed: i64,
    pub version: (u16, u16),
    pub players: Vec<Player>,
}
