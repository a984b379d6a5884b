'use strict';

AsciinemaPlayer.create('recording.cast', document.querySelector('#player'), { autoPlay: true, idleTimeLimit: 5 });
document.querySelector('.ap-wrapper').focus(); // so that it gets the keys
