"""The menu of the cafe behind `thincdialog.CoffeeOrder.v1`: guests say one thing, the
barista calls it another."""

from typing import Dict, List


def _ways(*lines: str) -> Dict[str, List[str]]:
    """House names, and behind a colon what guests say for each."""
    return {name: ways.split(" / ") for name, ways in (line.split(": ") for line in lines)}


# House name of a drink to what guests call it. Its place on the list is its price.
DRINKS = _ways(
    "Paper Lantern: green tea / a sencha / something light and grassy / a pot of matcha",
    "Green Bicycle: fresh mint / peppermint leaves / whatever herb grows on your windowsill / "
    "an infusion that tastes like toothpaste",
    "Lost Umbrella: an earl grey / plain black tea / a builder's brew / english breakfast",
    "Red Kite: berries / something fruity / a rosehip infusion / that pink hibiscus stuff",
    "Barn Dance: lemon and ginger / something for a sore throat / anything that chases off a cold "
    "/ ginger root with citrus",
    "Sunday Cardigan: a chai / spiced tea / something with cardamom / a masala chai",
    "Grumpy Badger: an espresso / the strongest coffee you have / a shot that wakes the dead / "
    "pure caffeine",
    "Tin Parade: a cappuccino / coffee under a mountain of foam / something frothy / "
    "the bubbly italian classic",
    "Tall Story: a latte / milky coffee / mostly milk with a little coffee / a flat white",
    "Midnight Otter: a cocoa / something chocolatey / melted chocolate in a cup / "
    "the drink every child wants",
)

# How it is served.
TEMPERATURES = _ways(
    "toasty: hot / steaming / warm / straight off the boil",
    "frosty: iced / chilled / over ice cubes / as cold as the sea",
)

# Cups, from the smallest. Each step up costs two acorns.
CUPS = _ways(
    "Wren: the tiniest you have / a thimble / just a sip / a doll's cup",
    "Sparrow: a small one / a little one / short / a modest cup",
    "Heron: medium / the usual size / a regular / middling",
    "Albatross: a huge one / a bucket / the largest / enough to swim in",
)

# What goes on top; its place on the list is its price.
EXTRAS = _ways(
    "nothing on top: no extras / plain / just as it comes / keep it simple",
    "Pebbles: sugar / two lumps / make it sweet / brown sugar",
    "a Bee: honey / a spoon of honey / whatever the hive gave / clover honey",
    "Moonlight: vanilla / a drop of vanilla / vanilla syrup / a split vanilla pod",
    "a Cloud: whipped cream / cream / a swirl of cream / lots of cream",
)

# Who hands out which cup, and where the drinks are made, two kinds at each place.
WAITERS = {"Wren": "Wilma", "Sparrow": "Olaf", "Heron": "Petra", "Albatross": "Hugo"}
PLACES = ["aquarium", "ladder", "piano", "globe", "blue door"]

OPENINGS = [
    "Good morning!", "Hello there.", "Hi!", "Hey, lovely place.", "Phew, what a day.", "Evening!",
    "Oh, it smells wonderful in here.", "Are you open?", "At last, my turn.", "Hello again!",
]  # fmt: skip
ORDERS = [
    "I'd like {drink}, {served}{stay}.",
    "Could I get {drink}, {served}{stay}?",
    "{drink} please, {served}{stay}.",
    "My friend swears by {drink}; {served} for me{stay}.",
    "I have been dreaming of {drink} all week, {served} if you can{stay}.",
    "Do you do {drink}? I'd have it {served}{stay}.",
]
STAYS = [
    "", "", ", to go", ", I am staying", ", I have a train to catch", ", and a seat by the window",
    ", for my sister", ", no hurry",
]  # fmt: skip
SIZES = [
    "{size}, and {extra}.",
    "Let me think... {size}, {extra}.",
    "{extra}, and as for the cup, {size}.",
    "Today? {size}. And {extra}, please.",
    "I'll go for {size} with these words: {extra}.",
    "{size} would do. {extra}, thanks.",
]
WHERE = [
    "Where do I pick it up?",
    "And whom do I ask for it?",
    "Lovely. Where shall I wait?",
    "Who will have it for me, and where?",
    "Sorry, I am new here. Where does it come out?",
]
BIGGER = [
    "Actually, one size up.",
    "Hm, make the cup a notch bigger after all.",
    "I am thirstier than I thought, next size up please.",
    "On second thoughts, the next bigger cup.",
]
SMALLER = [
    "Actually, one size down.",
    "Hm, make the cup a notch smaller after all.",
    "I should drink less, next size down please.",
    "On second thoughts, the next smaller cup.",
]
OTHER_WAY = [
    "Oh, and I changed my mind: {served} instead.",
    "Wait, can I have it {served} after all?",
    "My teeth! Rather {served}, please.",
    "The weather has turned, so {served} would be better.",
]
PAY = [
    "What do I owe you?", "How much is that?", "I'd like to pay.", "The bill, please!",
    "Right, that's all. What does it cost?",
]  # fmt: skip

REPLIES: Dict[str, List[str]] = {
    "order": [
        "One {temperature} {drink}! Which cup, and what on top?",
        "A {temperature} {drink}, splendid. What cup, and anything on top?",
        "Ah, the {drink}, {temperature}. Tell me the cup and the topping.",
    ],
    "size": [
        "A {cup} of {drink} with {extra}, got it.",
        "{drink}, {cup}, {extra}. Noted!",
        "So that's {extra} and a {cup} for your {drink}.",
    ],
    "where": [
        "Ask {waiter} by the {place}.",
        "{waiter} will wave at you from the {place}.",
        "Over at the {place}; {waiter} brings it.",
    ],
    "change": [
        "No trouble: now it's a {temperature} {drink} in the {cup}.",
        "Changed! {cup}, {drink}, {temperature}.",
        "Consider it done, a {temperature} {drink}, {cup}.",
    ],
    "pay": [
        "That makes {acorns} acorns.",
        "{acorns} acorns, please.",
        "Just {acorns} acorns, and mind the cat on your way out.",
    ],
}
