// The types of the program `eight`. `measure` adds the derive macros, and `main`.

struct Address {
    street: String,
    city: String,
    postcode: u32,
    unit: Option<String>,
}

enum Contact {
    #[default]
    Unknown,
    Email(String),
    Phone { country: u16, number: String },
    Post(Address),
}

struct Customer {
    id: u64,
    name: String,
    contacts: Vec<Contact>,
    settings: HashMap<String, String>,
    since: Option<i64>,
}

enum Payment {
    #[default]
    Open,
    Card { owner: String, until: (u16, u8) },
    Transfer(String),
    Voucher(u32, f64),
}

struct Line {
    product: u64,
    label: String,
    count: u32,
    price: f64,
    discount: Option<f32>,
}

struct Order {
    id: u64,
    customer: Customer,
    lines: Vec<Line>,
    payment: Payment,
    notes: BTreeMap<u32, String>,
    sent: bool,
}

struct Reading {
    time: i64,
    sensor: String,
    values: Vec<f32>,
    place: Option<(f64, f64)>,
    quality: u8,
    labels: Vec<String>,
}

struct Report {
    title: String,
    orders: Vec<Order>,
    readings: HashMap<String, Vec<Reading>>,
    totals: BTreeMap<String, f64>,
    worst: Option<Box<Reading>>,
}
