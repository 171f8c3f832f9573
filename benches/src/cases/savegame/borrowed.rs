//! The save-game with borrowed strings. `Serialize` is derived only to compare it with the owned one.

use std::collections::{BTreeMap, HashMap};

use super::owned::{Abilities, Mode};

#[derive(serde::Serialize, serde::Deserialize)]
pub enum Effect<'a> {
    Plain,
    Burning(f32),
    Poisoned { strength: u8, seconds: f32 },
    Enchanted(&'a str, u16),
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Item<'a> {
    pub id: &'a str,
    pub count: i8,
    pub slot: u8,
    pub damage: Option<u16>,
    #[serde(borrow)]
    pub effects: Vec<Effect<'a>>,
    #[serde(borrow)]
    pub contents: Option<Vec<Item<'a>>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Entity<'a> {
    pub id: &'a str,
    pub position: (f64, f64, f64),
    pub motion: (f64, f64, f64),
    pub rotation: (f32, f32),
    pub fall_distance: f32,
    pub fire: i16,
    pub air: i16,
    pub on_ground: bool,
    pub uuid: [u32; 4],
    #[serde(borrow)]
    pub custom_name: Option<&'a str>,
    pub health: f32,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub enum Goal<'a> {
    Rest,
    Reach((i32, i32, i32)),
    Collect { item: &'a str, count: u32 },
    Defeat { kind: &'a str, weapon: Option<Item<'a>> },
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Quest<'a> {
    pub title: &'a str,
    #[serde(borrow)]
    pub goals: Vec<Goal<'a>>,
    #[serde(borrow)]
    pub reward: Option<Option<Item<'a>>>,
    pub finished: Option<u64>,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Player<'a> {
    pub mode: Mode,
    pub previous_mode: Option<Mode>,
    pub score: i64,
    pub dimension: &'a str,
    #[serde(borrow)]
    pub selected: Item<'a>,
    pub selected_slot: u32,
    pub spawn: Option<(i64, i64, i64)>,
    pub food_level: u32,
    pub food_saturation: f32,
    pub xp_level: i32,
    pub xp_part: f32,
    #[serde(borrow)]
    pub inventory: Vec<Item<'a>>,
    #[serde(borrow)]
    pub ender_chest: Vec<Item<'a>>,
    pub abilities: Abilities,
    #[serde(borrow)]
    pub vehicle: Option<([u32; 4], Entity<'a>)>,
    #[serde(borrow)]
    pub left_shoulder: Option<Entity<'a>>,
    #[serde(borrow)]
    pub right_shoulder: Option<Entity<'a>>,
    #[serde(borrow)]
    pub recipes: Vec<&'a str>,
    #[serde(borrow)]
    pub quests: BTreeMap<&'a str, Quest<'a>>,
    #[serde(borrow)]
    pub statistics: BTreeMap<&'a str, u64>,
    pub visited: HashMap<u32, u16>,
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct SaveGame<'a> {
    pub seed: i64,
    pub version: (u16, u16),
    #[serde(borrow)]
    pub players: Vec<Player<'a>>,
}
