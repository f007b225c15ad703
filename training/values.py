"""Where the values of facts come from: lists, and words and codes made up on the spot.

What training must never see: the names and places of the HELD lists, made-up words and codes whose characters sum to
a multiple of eight, and made-up words with one of the HELD_SYLLABLES. `Pools(held=True)` draws only these, for the
evaluation.
"""
NAMES = """Ada Agnes Alan Alba Albert Alice Alma Amber Amir Amy Anders Andrea Angela Anita Anna Anton Arlo Arthur Asha
Astrid Aurora Basil Beatrix Bella Ben Berta Bianca Bjorn Boris Bruno Camila Carla Carlos Casper Cecil Celia Chloe
Clara Claude Clive Cora Cyril Daisy Dana Daniel Daphne Dario David Delia Denis Diana Dora Dylan Edgar Edith Elena Eli
Elias Elsa Elvira Emil Emma Enzo Eric Erika Esther Eva Ezra Fabian Felix Fiona Flora Frank Frida Gemma George Gina
Gita Gloria Grace Greta Gustav Hana Hanna Harold Hazel Hector Heidi Helga Henry Hilda Hugo Ian Ida Igor Ilse Ines
Ingrid Irene Iris Isaac Ivan Ivy Jack Jana Jasper Jenny Joan Joel Jonas Julia Kai Karin Karl Kate Keira Kira Lara
Laura Lea Lena Leo Leon Lily Lina Linus Lola Lorna Louis Lucas Lucy Luna Lydia Mabel Maggie Magnus Maja Marco Maria
Marta Martin Max Maya Mia Milo Mina Mona Nadia Naomi Nash Nell Nico Nils Nina Noah Nora Olaf Olga Oliver Omar Oscar
Otto Owen Pablo Pam Paul Pavel Pearl Penny Peter Petra Pia Quentin Rafael Ralph Ramona Raul Regina Rita Robin Rolf
Roman Rosa Roy Ruby Rufus Ruth Sam Sandra Sara Selma Simon Sofia Sonja Stella Sven Sylvia Tamara Tara Thea Theo Tilda
Tim Tina Toby Tom Uma Ursula Valentin Vera Victor Viola Wanda Walter Wendy Willa Xenia Yara Yusuf Zara Zelda
Zoe""".split()
HELD_NAMES = """Mira Nelson Tessa Corin Odette Fergus Lotte Bodil Ravi Marlon Kaspar Tove Elodie Gideon Maren Alwin
Priya Roderick Ottilie Bastian Cleo Dorian Effie Floris Hester Ingo Jolanda Kerstin Lasse Melvin Nuria Orla Percy Romy
Silas Sunniva Tamsin Ulla Vito Wilma Yorick Zita""".split()
PLACES = """Accra Amman Ankara Athens Baku Bath Belfast Bergen Berlin Bern Bogota Bonn Boston Bremen Brno Cairo
Cardiff Chester Chicago Cologne Cordoba Cork Dakar Dallas Delhi Denver Derby Dover Dresden Dublin Dundee Durham Exeter
Florence Galway Geneva Genoa Ghent Glasgow Graz Hamburg Hanoi Havana Helsinki Kiel Krakow Kyoto Lagos Leeds Leipzig
Lima Linz Lisbon London Lucerne Lund Lyon Madrid Malaga Malmo Manila Milan Miami Munich Nairobi Nantes Naples Nice
Oslo Ottawa Oxford Padua Paris Perth Pisa Porto Prague Quito Riga Rome Salem Seoul Seville Siena Sofia Split Sydney
Tampa Tokyo Toledo Trento Tunis Turin Utrecht Valencia Venice Verona Vienna Warsaw York Zagreb Zurich""".split()
HELD_PLACES = """Aarhus Basel Bilbao Calgary Delft Essen Fargo Girona Hobart Izmir Jena Kigali Lugano Mumbai Norwich
Odense Plymouth Ravenna Salzburg Tartu Uppsala Vilnius Winnipeg""".split()
COLOURS = """red blue green yellow purple orange pink black white brown grey golden silver violet crimson turquoise
beige""".split()
FOODS = """pizza soup rice bread cheese salad pasta curry cake fish beans noodles stew pie pancakes dumplings potatoes
chocolate honey toast""".split()
DRINKS = "tea coffee milk water juice lemonade cocoa cider wine beer".split()
FRUITS = "apples pears plums cherries grapes lemons oranges bananas melons figs peaches berries".split()
FLOWERS = "roses tulips lilies daisies poppies violets orchids sunflowers".split()
ANIMALS = "foxes owls whales bears wolves tigers otters penguins dolphins hedgehogs eagles deer".split()
SPORTS = "football tennis chess rowing skiing sailing boxing hockey running swimming cycling climbing".split()
SEASONS = "spring summer autumn winter".split()
HOBBIES = """gardening painting cooking fishing dancing singing knitting reading hiking pottery photography drawing
baking camping""".split()
JOBS = """baker nurse pilot farmer teacher painter lawyer driver sailor doctor gardener tailor librarian carpenter
dentist plumber singer writer waiter cook""".split()
MONTHS = "January February March April May June July August September October November December".split()

ONSETS = "B Br C Ch D Dr F Fl G Gr H J K Kr L M N P Pr Qu R S Sh St T Tr V W Y Z".split()
NUCLEI = "a e i o u ai ea ia oo".split()
MIDDLES = "b d f g k l ll m n nd nn p r rr rt s sk st t th v x z".split()
ENDINGS = "a o e i in an on el us is en ra na lo ta mi ko by".split()
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"
# Shapes of made-up words, letter by letter: every pair of letters turns up, so that every token learns to be copied.
SHAPES = "cvc cvcv vcv vccv cvccv cvcvc vcvc cvvc cvcvcv ccvc cvcc cvccvc vcvcv".split()
HELD_SYLLABLES = "bri dol fum gad hep jov kir lem nuv pok rus sen tiv vam wod yel zan".split()

_HELD_WORDS = {word.lower() for word in HELD_NAMES + HELD_PLACES}


def is_held(word):
    """Whether a made-up word or code belongs to the evaluation only."""
    word = word.lower()
    return sum(map(ord, word)) % 8 == 0 or word in _HELD_WORDS or any(syllable in word for syllable in HELD_SYLLABLES)


def _syllables(rng):
    word = rng.choice(ONSETS).lower() + rng.choice(NUCLEI)
    middles = rng.choices((0, 1, 2), (40, 48, 12))[0]
    for _ in range(middles):
        word += rng.choice(MIDDLES) + (rng.choice(VOWELS) if middles == 2 else "")
    return word + rng.choice(ENDINGS)


def _letters(rng):
    return "".join(rng.choice(VOWELS if kind == "v" else CONSONANTS) for kind in rng.choice(SHAPES))


class Pools:
    """Draws values. `novelty` is the share of values that are made up where a list exists beside them."""

    def __init__(self, held=False, novelty=0.55):
        self.held, self.novelty = held, novelty

    def word(self, rng):
        """A made-up word in lower case."""
        while True:
            word = _syllables(rng) if rng.random() < 0.6 else _letters(rng)
            if self.held and rng.random() < 0.3:
                middle = rng.choice(MIDDLES) if rng.random() < 0.4 else ""
                word = rng.choice(HELD_SYLLABLES) + middle + rng.choice(ENDINGS)
            if is_held(word) == self.held:
                return word

    def _listed(self, rng, known, held):
        if rng.random() < (0.55 if self.held else self.novelty):
            return self.word(rng).capitalize()
        return rng.choice(held if self.held else known)

    def name(self, rng):
        first = self._listed(rng, NAMES, HELD_NAMES)
        return f"{first} {self.word(rng).capitalize()}" if rng.random() < 0.1 else first

    def place(self, rng):
        place = self._listed(rng, PLACES, HELD_PLACES)
        return f"{rng.choice(('New', 'Port', 'Saint', 'Upper'))} {place}" if rng.random() < 0.07 else place

    def code(self, rng, digits=0):
        while True:
            code = "".join(rng.choices("0123456789", k=digits or rng.choice((3, 3, 4, 4, 5, 6))))
            if is_held(code) == self.held:
                return code

    def password(self, rng):
        k = rng.random()
        if k < 0.3:
            return self.word(rng) + self.code(rng, 3)
        return f"{self.word(rng)} {self.word(rng)}" if k < 0.5 else self.word(rng)

    def age(self, rng):
        return str(rng.randint(4, 98))

    def birthday(self, rng):
        return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}"

    def pick(self, pool):
        return lambda rng: rng.choice(pool)

    def near(self, rng, value):
        """Almost `value`: one letter or digit differs. None if there is no such value."""
        spots = [i for i, c in enumerate(value) if c.isdigit() or c.islower()]
        for _ in range(8 if spots else 0):
            i = rng.choice(spots)
            alike = "0123456789" if value[i].isdigit() else VOWELS if value[i] in VOWELS else CONSONANTS
            near = value[:i] + rng.choice(alike) + value[i + 1:]
            if near != value and (self.held or not any(map(is_held, pieces(near)))):
                return near
        return None


def pieces(value):
    """The words and codes of a value; what `is_held` is asked about."""
    out = []
    for word in value.split():
        letters = word.rstrip("0123456789")
        out += [piece for piece in (letters, word[len(letters):]) if piece]
    return out
