# Names of nobody, of several, and of an ID that does not exist, and an entry that expects nothing.
{ base, merge, ... }:
merge base {
  users.wiki.roles = [ "reader" ];
  hosts.beta.users = [
    "ann"
    "wiki"
  ];
  expect = [
    {
      who = "anne";
      reaches = [ "wiki" ];
    }
    {
      who = "wiki";
      not = [ "wiki" ];
    }
    {
      who = "node/ann";
      not = [ "wiki" ];
    }
    {
      who = "ann";
    }
    {
      who = "ann";
      reaches = [ "wikis" ];
    }
  ];
}
