{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  services.wiki.files.a = {
    ref = "a";
    dependsOn = [
      "file-wiki-b"
      "file-wiki-c"
    ];
  };
  services.wiki.files.b = {
    ref = "b";
    dependsOn = [ "file-wiki-c" ];
  };
  services.wiki.files.c.ref = "c";
}
