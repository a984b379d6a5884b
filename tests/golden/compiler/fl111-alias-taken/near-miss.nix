# A wildcard below the name of a service conflicts with none of them, nor does the name of a host or
# user.
{ base, merge, ... }:
merge base {
  services.wiki.aliases = [
    "*.blog"
    "*.wiki"
    "ann"
    "apps"
    "beta"
  ];
  services.blog = {
    host = "beta";
    port = 81;
    aliases = [
      "*.apps"
      "blogs"
    ];
  };
  roles.reader.services = [
    "blog"
    "wiki"
  ];
}
