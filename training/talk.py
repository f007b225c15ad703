"""Small talk that states no fact: what surrounds the facts in a conversation."""
from facts import article


def _list(text):
    return text.replace("\n", "").split("|")


SUBJECTS = _list("""the farmer|the old man|the young girl|the teacher|the queen|the king|the gardener|the sailor|
the baker|a small child|the postman|the captain|the doctor|a tall stranger|the shepherd|the mayor|the painter|
the nurse|the librarian|a little boy|the fisherman|the cook|the clever fox|a brown bear|the grey cat|the old dog|
a white bird|the tired driver|the young woman|the musician""")
# Verb, and what the assistant says to it; {s} is the subject.
VERBS = [("painted", "What colour did {s} choose?"), ("found", "Where was it before?"),
         ("lost", "I hope {s} finds it again."), ("cleaned", "That must have been a lot of work."),
         ("carried", "Was it heavy?"), ("bought", "How much did it cost?"), ("sold", "I hope {s} got a good price."),
         ("watched", "What happened next?"), ("built", "That is a great thing to make."),
         ("repaired", "Good, now it works again."), ("broke", "Oh no, what a pity!"), ("opened", "What was inside?"),
         ("closed", "Why did {s} close it?"), ("moved", "Where is it now?"), ("drew", "I would like to see that."),
         ("followed", "Where did it lead?"), ("forgot", "That happens to all of us."),
         ("hid", "I wonder why {s} did that."), ("borrowed", "I hope {s} gives it back."),
         ("washed", "Now it is clean again."), ("pulled", "{S} must be strong."), ("kept", "That was wise."),
         ("stole", "That was not nice of {s}."), ("wanted", "Maybe {s} will get it one day."),
         ("dropped", "Did it break?"), ("touched", "How did it feel?"), ("gave away", "That was kind of {s}."),
         ("looked for", "Did {s} find it?"), ("talked about", "What did {s} say?"),
         ("dreamed of", "That is a nice dream.")]
THINGS = _list("""a red ball|the big tree|a new book|the blue boat|a warm coat|the old house|a sweet cake|
the tall tower|a bright lamp|the long ladder|a wooden chair|the broken clock|a heavy stone|the silver spoon|
a small basket|the green bottle|an empty box|the iron gate|a paper map|the round table|a golden ring|the old piano|
a dusty carpet|the garden fence|a bag of flour|the little bridge|an old letter|the copper kettle|a pair of shoes|
the narrow path""")
WHERE = _list("""in the park|near the river|at the market|on the hill|in the garden|by the sea|in the town|at school|
behind the church|under the bridge|in the forest|at the station|next to the mill|in the kitchen|on the roof|
in the valley|at the harbour|across the street|in the barn|beside the lake""")
WHEN = _list("""yesterday|this morning|last night|on Monday|on Friday|last week|before breakfast|after lunch|at noon|
in the evening|two days ago|all day long""")
WEATHER = [("rainy", "Take an umbrella with you."), ("sunny", "Enjoy the sun!"), ("cold", "Stay warm."),
           ("windy", "Hold on to your hat."), ("foggy", "Be careful on the road."), ("hot", "Drink enough water."),
           ("snowy", "Then you can build a snowman.")]
MOODS = [("tired", "You should rest a little."), ("happy", "I am glad to hear that."),
         ("hungry", "Then eat something good."), ("bored", "Shall I tell you a story?"),
         ("sad", "I am sorry to hear that."), ("busy", "Do one thing after the other."),
         ("nervous", "Take a deep breath."), ("excited", "That is wonderful."), ("lonely", "You can talk to me."),
         ("thirsty", "Have a glass of water.")]
CHAT = [("Hello!", "Hello! How are you today?"), ("Hi.", "Hello! How are you today?"),
        ("Good morning.", "Good morning! Did you sleep well?"), ("Good evening.", "Good evening! How was your day?"),
        ("Good night.", "Good night! Sleep well."), ("How are you?", "I am fine, thank you."),
        ("Thank you.", "You are welcome."), ("Thanks a lot!", "You are welcome."),
        ("Can you help me?", "Of course. What do you need?"), ("Are you there?", "Yes, I am here."),
        ("Are you a robot?", "I am a small language model."), ("What can you do?", "I can listen and remember."),
        ("Tell me something.", "A good memory is a good friend."),
        ("Tell me a story.", "Once upon a time a small bird lived in a big tree."),
        ("And then?", "Then the bird flew over the sea."),
        ("How does the story end?", "The bird came home and was happy."),
        ("That is funny.", "I am glad that you like it."), ("I have to go now.", "Goodbye! See you soon."),
        ("I am back.", "Welcome back!"), ("What do you think?", "I think it is a good idea."),
        ("Is that true?", "I believe so."), ("Do you like music?", "I like to hear about it."),
        ("Do you like books?", "Yes, books are full of words."), ("What day is it?", "I do not have a calendar."),
        ("What time is it?", "I do not have a clock."), ("Please remember what I tell you.", "I will remember it."),
        ("Let us talk about something else.", "Good. What shall we talk about?"),
        ("I did not sleep well.", "I hope the next night is better."),
        ("I am going to the market.", "Buy something nice."), ("I made a mistake.", "Everybody makes mistakes."),
        ("See you tomorrow.", "See you tomorrow!"), ("You are nice.", "Thank you, so are you."),
        ("I like you.", "I like you too."), ("Never mind.", "All right."), ("Yes.", "Good."), ("No.", "All right."),
        ("Really?", "Yes, really."), ("Why?", "I do not know why."), ("Sorry.", "No problem."),
        ("Wait a moment.", "I will wait.")]


def capital(text):
    return text[0].upper() + text[1:]


def _article_of(thing):
    return article(thing.split(" ", 1)[1]) if thing.startswith("the ") else thing


def _event(rng):
    subject, (verb, reply) = rng.choice(SUBJECTS), rng.choice(VERBS)
    definite = "the " + subject.split(" ", 1)[1]
    text = f"{subject} {verb} {rng.choice(THINGS)}"
    if rng.random() < 0.6:
        text += " " + rng.choice(WHERE)
    if rng.random() < 0.4:
        text += " " + rng.choice(WHEN)
    return capital(text) + ".", reply.replace("{s}", definite).replace("{S}", capital(definite))


def remark(rng):
    """One sentence of the user and what the assistant says to it."""
    k = rng.random()
    if k < 0.65:
        return _event(rng)
    if k < 0.75:
        word, reply = rng.choice(WEATHER)
        return rng.choice([f"It is {word} today.", f"The weather is {word}."]), reply
    if k < 0.87:
        word, reply = rng.choice(MOODS)
        return rng.choice([f"I feel {word}.", f"Today I am {word}."]), reply
    return f"There is {_article_of(rng.choice(THINGS))} {rng.choice(WHERE)}.", rng.choice(["I see.", "Interesting."])


def filler(rng, chatty=0.0):
    """A pair of messages. With probability `chatty` the user says another sentence before; the reply fits the last."""
    if rng.random() < 0.22:
        return rng.choice(CHAT)
    text, reply = remark(rng)
    while rng.random() < chatty:
        text = remark(rng)[0] + " " + text
    return text, reply
