"""Short closed lists that the claims about a city are checked against."""

from __future__ import annotations

ISLAND_COUNTRIES = {"Indonesia", "Japan", "Philippines", "Cuba", "Singapore", "UK"}
LANDLOCKED_COUNTRIES = {"Ethiopia", "Hungary", "Uzbekistan"}
COAST_SIDES: dict[str, str] = {
    "Shanghai": "e", "Tokyo": "e se", "Tianjin": "n ne e", "Dalian": "ne n", "Qingdao": "e ne",
    "Hong Kong": "s se", "Pusan": "s se e", "Inchon": "w nw", "Yokohama": "e se", "Osaka": "s w",
    "Nagoya": "s", "Bombay": "w", "Madras": "e se s", "Karachi": "s", "Jakarta": "n nw",
    "Surabaya": "n ne", "Semarang": "n", "Cirebon": "n", "Singapore": "s", "Istanbul": "nw n",
    "Izmir": "w", "St Petersburg": "nw w", "Alexandria": "n", "Casablanca": "w nw",
    "Abidjan": "s se", "Rio de Janeiro": "se e", "Salvador": "e ne", "Fortaleza": "ne n",
    "Lima": "w", "Havanna": "n nw", "New York": "e ne", "Los Angeles": "w sw", "Sydney": "e se",
    "Guangzhou": "s se", "Taipei": "n", "Calcutta": "e", "Medan": "ne e", "Bangkok": "s",
    "Yangon": "s", "Ho Chi Minh City": "s se", "Rome": "w", "Guayaquil": "w", "Caracas": "n",
    "Buenos Aires": "e", "Houston": "s se",
}  # fmt: skip
"""On which coasts of its country, island or continent a city lies or nearly lies; a quarter turn
or more from all of them is false, the rest is debatable."""
MINOR_RIVERS = {
    "Tehran", "Bangalore", "Mexico City", "Mashhad", "Zibo", "Addis Ababa", "Brasilia", "Ankara",
    "Belo Horizonte", "Bandung", "Bogor", "Malang", "Sukabumi", "Faisalabad", "Quezon City",
    "Izmir", "Karachi", "Dalian", "Qingdao", "Inchon", "Casablanca", "Fortaleza", "Salvador",
    "Rio de Janeiro", "Cirebon", "Semarang", "Beijing", "Houston", "Caracas",
}  # fmt: skip
"""Cities whose streams are too small to count as "the" river."""
BORDER_CITIES: dict[str, tuple[str, ...]] = {
    "Lahore": ("india",),
    "Kinshaha": ("republic of the congo", "republic of congo", "congo brazzaville", "congo"),
    "Singapore": ("malaysia",),
    "Buenos Aires": ("uruguay",),
    "Tashkent": ("kazakhstan",),
}
DEEP_INLAND = {
    "Moscow", "Madrid", "Ankara", "Tehran", "Baghdad", "Wuhan", "Xian", "Delhi", "Bangalore",
    "Hyderabad", "Brasilia", "Belo Horizonte", "Bogota", "Medellin", "Mexico City", "Addis Ababa",
    "Kanpur", "Shanghai", "Nanjing", "Jinan", "Chengdu", "Chongqing", "Zibo", "Taiyuan", "Beijing",
    "Tianjin", "Qingdao", "Madras", "Sydney", "Paris", "Rome", "Lima", "Caracas", "Sao Paulo",
    "Rio de Janeiro", "Salvador", "Fortaleza", "Abidjan", "Casablanca", "Cairo", "Alexandria",
    "Giza", "Chicago", "New York", "Izmir", "Istanbul", "Karachi", "Bangkok", "Bombay", "Ahmedabad",
}  # fmt: skip
LARGEST = {
    "africa": "", "asia": "", "europe": "Istanbul", "south america": "Sao Paulo",
    "north america": "Mexico City", "world": "Tokyo", "latin america": "", "texas": "Houston",
    "california": "Los Angeles", "southeast asia": "", "maharashtra": "Bombay",
    "west bengal": "Calcutta", "tamil nadu": "Madras", "karnataka": "Bangalore",
    "telangana": "Hyderabad", "gujarat": "Ahmedabad", "sindh": "Karachi", "punjab": "Lahore",
    "west java": "Bandung", "east java": "Surabaya", "central java": "Semarang",
    "java": "Jakarta", "sumatra": "Medan", "north sumatra": "Medan", "illinois": "Chicago",
    "ontario": "Toronto", "new south wales": "Sydney", "oceania": "Sydney",
    "antioquia": "Medellin", "valle del cauca": "Cali", "minas gerais": "Belo Horizonte",
    "bahia": "Salvador", "ceara": "Fortaleza", "hubei": "Wuhan", "sichuan": "Chengdu",
    "shaanxi": "Xian", "guangdong": "Guangzhou", "heilongjiang": "Haerbin", "jilin": "Changchun",
    "liaoning": "Shenyang", "shanxi": "Taiyuan", "midwest": "Chicago", "caribbean": "",
    "taiwan": "", "kansai region": "Osaka", "chubu region": "Nagoya", "middle east": "",
}  # fmt: skip
COLONIES: dict[str, frozenset[str]] = {
    "Hong Kong": frozenset({"britain", "japan"}),
    "Taipei": frozenset({"japan"}),
    "Qingdao": frozenset({"germany", "japan"}),
    "Dalian": frozenset({"japan", "russia"}),
    "Shenyang": frozenset({"japan"}),
    "Changchun": frozenset({"japan"}),
    "Haerbin": frozenset({"japan"}),
    "Casablanca": frozenset({"france", "portugal"}),
    "Quezon City": frozenset({"spain", "united states", "japan"}),
    "Los Angeles": frozenset({"spain"}),
    "Houston": frozenset(),
    "Chicago": frozenset({"france", "britain"}),
    "New York": frozenset({"britain", "netherlands"}),
    "Bombay": frozenset({"britain", "portugal"}),
}
LANGUAGES = {
    "english", "spanish", "portuguese", "french", "german", "italian", "russian", "arabic",
    "chinese", "mandarin", "cantonese", "japanese", "korean", "hindi", "urdu", "bengali", "tamil",
    "telugu", "kannada", "marathi", "gujarati", "punjabi", "turkish", "persian", "farsi", "thai",
    "vietnamese", "indonesian", "malay", "javanese", "sundanese", "tagalog", "filipino", "burmese",
    "hungarian", "romanian", "ukrainian", "polish", "dutch", "greek", "hebrew", "swahili",
    "amharic", "uzbek", "kurdish", "pashto", "sindhi", "malayalam", "lingala", "quechua",
}  # fmt: skip
DEMONYMS = {
    "european": "europe", "asian": "asia", "african": "africa", "chinese": "china",
    "indian": "india", "japanese": "japan", "korean": "south korea", "brazilian": "brazil",
    "russian": "russia", "indonesian": "indonesia", "american": "united states",
    "german": "germany", "french": "france", "italian": "italy", "spanish": "spain",
    "turkish": "turkey", "egyptian": "egypt", "iranian": "iran", "iraqi": "iraq",
    "mexican": "mexico", "colombian": "colombia", "canadian": "canada", "british": "uk",
    "australian": "australia", "pakistani": "pakistan", "thai": "thailand",
    "vietnamese": "vietnam", "ukrainian": "ukraine", "romanian": "romania",
    "hungarian": "hungary", "peruvian": "peru", "chilean": "chile", "cuban": "cuba",
    "moroccan": "morocco", "mediterranean": "mediterranean region",
    "scandinavian": "scandinavia", "caribbean": "caribbean",
}  # fmt: skip
