# Unix seconds of dates: "2027-01-31", which is the beginning of that day in UTC,
# "2027-01-31T18:00Z", or with seconds as programs write them.
let
  inherit (builtins)
    elem
    elemAt
    fromJSON
    head
    isString
    match
    ;
  form = "([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):([0-5][0-9])(:([0-5][0-9]))?Z)?";
  number = text: fromJSON (head (match "0*([0-9]+)" text));
  mod = a: b: a - (a / b) * b;
  leap = y: mod y 4 == 0 && (mod y 100 != 0 || mod y 400 == 0);
  last =
    y: m:
    if m == 2 then
      (if leap y then 29 else 28)
    else if
      elem m [
        4
        6
        9
        11
      ]
    then
      30
    else
      31;
  # Days since 1970 in the Gregorian calendar, computed in years that begin in March.
  days =
    y: m: d:
    let
      year = if m > 2 then y else y - 1;
      era = year / 400;
      of = year - era * 400;
      day = (153 * (if m > 2 then m - 3 else m + 9) + 2) / 5 + d - 1;
    in
    era * 146097 + of * 365 + of / 4 - of / 100 + day - 719468;
in
rec {
  # Reports whether a value is a date, from 1971 on.
  # isDate :: Any -> Bool
  isDate =
    v:
    let
      part = match form v;
      at = i: number (elemAt part i);
    in
    isString v && part != null && at 0 > 1970 && at 2 <= last (at 0) (at 1);

  # seconds :: String -> Int
  seconds =
    v:
    let
      part = match form v;
      at = i: if elemAt part i == null then 0 else number (elemAt part i);
    in
    days (at 0) (at 1) (at 2) * 86400 + at 4 * 3600 + at 5 * 60 + at 7;
}
