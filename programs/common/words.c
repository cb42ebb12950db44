/* words.c — the words of the small world's grammar, which is in world.c. */
#include "words.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* clang-format off */
const topic topics[] = {
    {{{"boat", "boats"}, {"net", "nets"}, {"sail", "sails"}, {"anchor", "anchors"},
      {"rope", "ropes"}, {"oar", "oars"}, {"shell", "shells"}, {"flag", "flags"}},
     {"harbour", "beach", "island"}, {"mended", "tied"}},
    {{{"plough", "ploughs"}, {"fence", "fences"}, {"cart", "carts"}, {"sack", "sacks"},
      {"egg", "eggs"}, {"bucket", "buckets"}, {"ladder", "ladders"}, {"wheel", "wheels"}},
     {"farm", "barn", "field"}, {"filled", "repaired"}},
    {{{"plate", "plates"}, {"spoon", "spoons"}, {"pot", "pots"}, {"knife", "knives"},
      {"cup", "cups"}, {"kettle", "kettles"}, {"loaf", "loaves"}, {"jug", "jugs"}},
     {"kitchen", "pantry", "cellar"}, {"washed", "warmed"}},
    {{{"book", "books"}, {"pencil", "pencils"}, {"map", "maps"}, {"desk", "desks"},
      {"letter", "letters"}, {"picture", "pictures"}, {"page", "pages"}, {"ruler", "rulers"}},
     {"school", "library", "classroom"}, {"copied", "read"}},
    {{{"rose", "roses"}, {"bush", "bushes"}, {"bench", "benches"}, {"rake", "rakes"},
      {"seed", "seeds"}, {"spade", "spades"}, {"apple", "apples"}, {"fountain", "fountains"}},
     {"garden", "orchard", "park"}, {"planted", "picked"}},
    {{{"sword", "swords"}, {"crown", "crowns"}, {"shield", "shields"}, {"throne", "thrones"},
      {"banner", "banners"}, {"tower", "towers"}, {"helmet", "helmets"}, {"torch", "torches"}},
     {"castle", "palace", "dungeon"}, {"polished", "guarded"}},
    {{{"sledge", "sledges"}, {"glove", "gloves"}, {"scarf", "scarves"}, {"blanket", "blankets"},
      {"boot", "boots"}, {"icicle", "icicles"}, {"skate", "skates"}, {"stove", "stoves"}},
     {"mountain", "cabin", "village"}, {"knitted", "warmed"}},
    {{{"drum", "drums"}, {"violin", "violins"}, {"flute", "flutes"}, {"song", "songs"},
      {"trumpet", "trumpets"}, {"piano", "pianos"}, {"bell", "bells"}, {"guitar", "guitars"}},
     {"theatre", "concert", "stage"}, {"played", "tuned"}},
    {{{"engine", "engines"}, {"ticket", "tickets"}, {"suitcase", "suitcases"}, {"signal", "signals"},
      {"wagon", "wagons"}, {"whistle", "whistles"}, {"clock", "clocks"}, {"bridge", "bridges"}},
     {"station", "tunnel", "platform"}, {"checked", "stopped"}},
    {{{"tent", "tents"}, {"arrow", "arrows"}, {"nest", "nests"}, {"branch", "branches"},
      {"mushroom", "mushrooms"}, {"trap", "traps"}, {"leaf", "leaves"}, {"lantern", "lanterns"}},
     {"forest", "valley", "camp"}, {"gathered", "burned"}},
    {{{"coin", "coins"}, {"basket", "baskets"}, {"carpet", "carpets"}, {"lamp", "lamps"},
      {"scale", "scales"}, {"jewel", "jewels"}, {"barrel", "barrels"}, {"spice", "spices"}},
     {"market", "shop", "square"}, {"weighed", "sold"}},
    {{{"key", "keys"}, {"cabinet", "cabinets"}, {"table", "tables"}, {"mirror", "mirrors"},
      {"window", "windows"}, {"curtain", "curtains"}, {"chair", "chairs"}, {"drawer", "drawers"}},
     {"house", "attic", "hall"}, {"opened", "dusted"}},
};
/* clang-format on */
const int ntopics = COUNT(topics);

const person people[] = {
    {"man", "men", "he", "his"},          {"woman", "women", "she", "her"},         {"boy", "boys", "he", "his"},
    {"girl", "girls", "she", "her"},      {"king", "kings", "he", "his"},           {"queen", "queens", "she", "her"},
    {"prince", "princes", "he", "his"},   {"princess", "princesses", "she", "her"}, {"uncle", "uncles", "he", "his"},
    {"aunt", "aunts", "she", "her"},      {"father", "fathers", "he", "his"},       {"mother", "mothers", "she", "her"},
    {"brother", "brothers", "he", "his"}, {"sister", "sisters", "she", "her"},
};
const int npeople = COUNT(people), nkin = 6;

const named names[] = {
    {"Anna", "she", "her"}, {"Ben", "he", "his"},   {"Clara", "she", "her"}, {"David", "he", "his"},
    {"Emma", "she", "her"}, {"Frank", "he", "his"}, {"Greta", "she", "her"}, {"Hugo", "he", "his"},
    {"Ida", "she", "her"},  {"Jonas", "he", "his"}, {"Karla", "she", "her"}, {"Leo", "he", "his"},
};
const int nnames = COUNT(names);

const ambiguous senses[] = {
    {"ship",
     {{"The old ship", "A large ship", "The white ship", "This fast ship"},
      {"The merchants ship", "Some farmers ship", "The traders ship", "Our uncles ship"}},
     {{"sails", "returns", "comes", "drifts"}, {"wool", "corn", "salt", "wine"}},
     "to the island"},
    {"train",
     {{"The old train", "A long train", "The red train", "This slow train"},
      {"The soldiers train", "Some farmers train", "The princes train", "Our uncles train"}},
     {{"waits", "stops", "arrives", "whistles"}, {"horses", "dogs", "hawks", "recruits"}},
     "near the village"},
    {"watch",
     {{"The gold watch", "A small watch", "The broken watch", "This dear watch"},
      {"The children watch", "Some girls watch", "The visitors watch", "Our aunts watch"}},
     {{"ticks", "shines", "lies", "rusts"}, {"birds", "actors", "clouds", "dancers"}},
     "in the park"},
    {"water",
     {{"The cold water", "Some clear water", "The deep water", "This fresh water"},
      {"The gardeners water", "Some girls water", "The sisters water", "Our mothers water"}},
     {{"flows", "freezes", "glitters", "rises"}, {"flowers", "trees", "herbs", "vines"}},
     "behind the house"},
    {"bank",
     {{"Father kept the money in the bank", "The thief broke into the bank", "The clerk works in the bank",
       "She took her coins to the bank"},
      {"Father caught a fish from the bank", "The swimmer came to the bank", "The ducks rest on the bank",
       "She rowed her boat to the bank"}},
     {{"rich", "closed", "trusted", "robbed"}, {"muddy", "steep", "grassy", "flooded"}},
     NULL},
    {"bat",
     {{"The boy hit the ball with a bat", "The player bought a bat", "The team owned a bat", "She swung a bat"},
      {"The boy saw wings on a bat", "The cave hid a bat", "The owl hunted a bat", "She heard at night a bat"}},
     {{"wooden", "varnished", "cracked", "smooth"}, {"blind", "furry", "awake", "asleep"}},
     NULL},
    {"ring",
     {{"The bride wore a ring", "The jeweller made a ring", "The thief stole a ring", "Her finger bore a ring"},
      {"The boxers fought in a ring", "The circus set up a ring", "The clowns danced in a ring",
       "She rode the horse round a ring"}},
     {{"golden", "precious", "silver", "engraved"}, {"crowded", "sandy", "round", "noisy"}},
     NULL},
    {"spring",
     {{"After the winter came a spring", "The birds sang all that spring", "The year began with a spring",
       "She was born in a spring"},
      {"From the rock came a spring", "The deer drank at a spring", "The river begins at a spring",
       "She filled her jug at a spring"}},
     {{"warm", "late", "sunny", "short"}, {"bubbling", "hidden", "icy", "pure"}},
     NULL},
};
const int nsenses = COUNT(senses);

const char *const verbs[6] = {"carried", "found", "moved", "cleaned", "bought", "lost"};
const char *const feelings[8] = {"hungry", "tired", "thirsty", "afraid", "happy", "sad", "strong", "clever"};
const char *const states[8] = {"heavy", "broken", "empty", "full", "cheap", "rusty", "dirty", "valuable"};
const char *const prepositions[6] = {"behind", "under", "near", "beside", "above", "with"};
const noun        acts[6] = {{"sleeps", "sleep"}, {"waits", "wait"},   {"sings", "sing"},
                             {"runs", "run"},     {"laughs", "laugh"}, {"dreams", "dream"}};
const noun        animals[8] = {{"chicken", "chickens"}, {"dog", "dogs"},  {"cat", "cats"},   {"horse", "horses"},
                                {"cow", "cows"},         {"fox", "foxes"}, {"goat", "goats"}, {"duck", "ducks"}};
const char *const opinions[4] = {"beautiful", "ugly", "strange", "lovely"};
const char *const sizes[4] = {"big", "small", "tall", "tiny"};
const char *const ages[4] = {"old", "new", "young", "ancient"};
const char *const colours[5] = {"red", "green", "blue", "white", "black"};
const char *const materials[4] = {"wooden", "iron", "silver", "paper"};
