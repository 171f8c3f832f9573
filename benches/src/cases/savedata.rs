//! (n) encodes and decodes the save data of 500 players.
//!
//! The types, the number of players and the ranges of values are those of the `minecraft_savedata` set of
//! rust_serialization_benchmark: nested structs, options, tuples, arrays and short strings. The code is
//! tenarc's own.

use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows, types, wincode_row};
use crate::peers::{self, Codec};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 500;

types! {
    enum GameType {
        Survival,
        Creative,
        Adventure,
        Spectator,
    }

    struct Item {
        count: i8,
        slot: u8,
        id: String,
    }

    struct Abilities {
        walk_speed: f32,
        fly_speed: f32,
        may_fly: bool,
        flying: bool,
        invulnerable: bool,
        may_build: bool,
        instabuild: bool,
    }

    struct Entity {
        id: String,
        pos: (f64, f64, f64),
        motion: (f64, f64, f64),
        rotation: (f32, f32),
        fall_distance: f32,
        fire: u16,
        air: u16,
        on_ground: bool,
        no_gravity: bool,
        invulnerable: bool,
        portal_cooldown: i32,
        uuid: [u32; 4],
        custom_name: Option<String>,
        custom_name_visible: bool,
        silent: bool,
        glowing: bool,
    }

    struct RecipeBook {
        recipes: Vec<String>,
        to_be_displayed: Vec<String>,
        is_filtering_craftable: bool,
        is_gui_open: bool,
        is_furnace_filtering_craftable: bool,
        is_furnace_gui_open: bool,
        is_blasting_furnace_filtering_craftable: bool,
        is_blasting_furnace_gui_open: bool,
        is_smoker_filtering_craftable: bool,
        is_smoker_gui_open: bool,
    }

    struct Player {
        game_type: GameType,
        previous_game_type: GameType,
        score: i64,
        dimension: String,
        selected_item_slot: u32,
        selected_item: Item,
        spawn_dimension: Option<String>,
        spawn_x: i64,
        spawn_y: i64,
        spawn_z: i64,
        spawn_forced: Option<bool>,
        sleep_timer: u16,
        food_exhaustion_level: f32,
        food_saturation_level: f32,
        food_tick_timer: u32,
        xp_level: u32,
        xp_p: f32,
        xp_total: i32,
        xp_seed: i32,
        inventory: Vec<Item>,
        ender_items: Vec<Item>,
        abilities: Abilities,
        entered_nether_position: Option<(f64, f64, f64)>,
        root_vehicle: Option<([u32; 4], Entity)>,
        shoulder_entity_left: Option<Entity>,
        shoulder_entity_right: Option<Entity>,
        seen_credits: bool,
        recipe_book: RecipeBook,
    }

    struct Players {
        players: Vec<Player>,
    }
}

const ITEMS: [&str; 8] =
    ["dirt", "stone", "pickaxe", "sand", "gravel", "shovel", "chestplate", "steak"];
const BEINGS: [&str; 8] =
    ["cow", "sheep", "zombie", "skeleton", "spider", "creeper", "parrot", "bee"];
const NAMES: [&str; 8] =
    ["rainbow", "princess", "steve", "johnny", "missy", "coward", "fairy", "howard"];
const RECIPES: [&str; 8] =
    ["pickaxe", "torch", "bow", "crafting table", "furnace", "shears", "arrow", "tnt"];
const PLACES: [&str; 3] = ["overworld", "nether", "end"];

/// All integers take any value of their type, floats are from 0 to 1, and half of the options are empty.
impl Random {
    fn coin(&mut self) -> bool {
        self.chance(50)
    }

    fn half<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.coin().then(|| make(self))
    }

    fn part(&mut self) -> f32 {
        self.unit() as f32
    }

    fn point(&mut self) -> (f64, f64, f64) {
        (self.unit(), self.unit(), self.unit())
    }

    fn uuid(&mut self) -> [u32; 4] {
        [0; 4].map(|_: u32| self.bits() as u32)
    }

    fn word(&mut self, from: &[&str]) -> String {
        self.pick(from).to_string()
    }

    fn game_type(&mut self) -> GameType {
        match self.below(4) {
            0 => GameType::Survival,
            1 => GameType::Creative,
            2 => GameType::Adventure,
            _ => GameType::Spectator,
        }
    }

    fn stored_item(&mut self) -> Item {
        Item { count: self.bits() as i8, slot: self.bits() as u8, id: self.word(&ITEMS) }
    }

    fn being(&mut self) -> Entity {
        Entity {
            id: self.word(&BEINGS),
            pos: self.point(),
            motion: self.point(),
            rotation: (self.part(), self.part()),
            fall_distance: self.part(),
            fire: self.bits() as u16,
            air: self.bits() as u16,
            on_ground: self.coin(),
            no_gravity: self.coin(),
            invulnerable: self.coin(),
            portal_cooldown: self.bits() as i32,
            uuid: self.uuid(),
            custom_name: self.half(|random| random.word(&NAMES)),
            custom_name_visible: self.coin(),
            silent: self.coin(),
            glowing: self.coin(),
        }
    }

    fn recipe_book(&mut self) -> RecipeBook {
        RecipeBook {
            recipes: self.many(0, 30, |random| random.word(&RECIPES)),
            to_be_displayed: self.many(0, 10, |random| random.word(&RECIPES)),
            is_filtering_craftable: self.coin(),
            is_gui_open: self.coin(),
            is_furnace_filtering_craftable: self.coin(),
            is_furnace_gui_open: self.coin(),
            is_blasting_furnace_filtering_craftable: self.coin(),
            is_blasting_furnace_gui_open: self.coin(),
            is_smoker_filtering_craftable: self.coin(),
            is_smoker_gui_open: self.coin(),
        }
    }

    fn saved_player(&mut self) -> Player {
        Player {
            game_type: self.game_type(),
            previous_game_type: self.game_type(),
            score: self.bits() as i64,
            dimension: self.word(&PLACES),
            selected_item_slot: self.bits() as u32,
            selected_item: self.stored_item(),
            spawn_dimension: self.half(|random| random.word(&PLACES)),
            spawn_x: self.bits() as i64,
            spawn_y: self.bits() as i64,
            spawn_z: self.bits() as i64,
            spawn_forced: self.half(Self::coin),
            sleep_timer: self.bits() as u16,
            food_exhaustion_level: self.part(),
            food_saturation_level: self.part(),
            food_tick_timer: self.bits() as u32,
            xp_level: self.bits() as u32,
            xp_p: self.part(),
            xp_total: self.bits() as i32,
            xp_seed: self.bits() as i32,
            inventory: self.many(0, 40, Self::stored_item),
            ender_items: self.many(0, 27, Self::stored_item),
            abilities: Abilities {
                walk_speed: self.part(),
                fly_speed: self.part(),
                may_fly: self.coin(),
                flying: self.coin(),
                invulnerable: self.coin(),
                may_build: self.coin(),
                instabuild: self.coin(),
            },
            entered_nether_position: self.half(Self::point),
            root_vehicle: self.half(|random| (random.uuid(), random.being())),
            shoulder_entity_left: self.half(Self::being),
            shoulder_entity_right: self.half(Self::being),
            seen_credits: self.coin(),
            recipe_book: self.recipe_book(),
        }
    }
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let mut random = Random::new(7);
    let players = &Players { players: (0..COUNT).map(|_| random.saved_player()).collect() };

    let message = peers::Tenarc::to_vec(players);
    let message = message.as_slice();
    let floor = Row::new("floor", "", Placed::new(message, 0))
        .encode(move |buffer| buffer.extend_from_slice(message))
        .fresh(move || message.to_vec())
        .decode(move |_| timed(|| players.clone()));
    let mut rows = vec![
        floor,
        peers::row::<peers::Tenarc, _>("plain", players),
        peers::row::<peers::TenarcColumns, _>("columns", players),
        peers::row::<peers::Cbor4ii, _>("plain", players),
        peers::row::<peers::Minicbor, _>("plain", players),
        peers::row::<peers::RmpNamed, _>("plain", players),
        peers::row::<peers::RmpCompact, _>("plain", players),
        peers::row::<peers::Ciborium, _>("plain", players),
        peers::row::<peers::Json, _>("plain", players),
        peers::row::<peers::Bincode1, _>("plain", players),
        peers::row::<peers::Bincode2, _>("plain", players),
        peers::row::<peers::Postcard, _>("plain", players),
        peers::zap("plain", players),
        peers::row::<peers::BitcodeSerde, _>("plain", players),
        bincode_row!(players, Players),
        wincode_row!(players, Players),
        bitcode_row!(players, Players),
    ];
    rows.extend(rkyv_rows!(players, Players));

    let report = Case {
        title: format!("(n) save data: {COUNT} players of nested structs, options and strings"),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of tenarc's message; decode: clone of the value",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("savedata", &report);
    let case = "n savedata";
    targets.rows(case, &report);
    let encode = |form| report.median("tenarc", form, Column::Encode);
    targets.at_most(case, "columns, encode / rows", (encode("columns"), encode("plain")), 1.0);
    targets.columns(case, &report, (Column::ToVec, "bitcode", "plain"), 1.25);
    targets.make_aim();
    targets.columns(case, &report, (Column::Decode, "bincode 1", "plain"), 1.5);
    targets.columns_size(case, &report, "bitcode", 1.1);
}
