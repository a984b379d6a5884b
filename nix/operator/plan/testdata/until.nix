# A later end or a removed one widens access; an earlier or an added one narrows it.
{ base, merge, ... }:
let
  ending =
    fay: gus: hal: ida: kim: lea:
    merge base {
      hosts.beta.users = [
        "fay"
        "gus"
        "hal"
        "ida"
        "jo"
        "kim"
        "lea"
      ];
      users = {
        inherit
          fay
          gus
          hal
          ida
          kim
          lea
          ;
        jo.until.reader = "2027-01-31";
      };
    };
  until = date: { until.reader = date; };
  good.roles = [ "reader" ];
in
{
  before = ending (until "2027-01-31") (until "2027-01-31") good (until "2027-03-01") { } (
    until "2027-04-01"
  );
  after = ending (until "2027-02-28T18:00Z") good (until "2027-01-31") (until "2027-01-01") (
    until "2027-04-01"
  ) { };
}
