() => {
  const faults = [], slack = 1.5, said = text => JSON.stringify(text.trim().slice(0, 60));
  const inner = box => ({left: box.left + 0.5, right: box.right - 0.5,
    top: box.top + box.height * 0.18, bottom: box.bottom - box.height * 0.18});
  const whole = document.documentElement.scrollWidth;
  if (whole > innerWidth) faults.push(`the page is ${whole} wide, of ${innerWidth}`);

  // Text elements of pictures: inside their picture, and none on another.
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width || !svg.checkVisibility({contentVisibilityAuto: true})) continue;
    const name = svg.getAttribute('aria-labelledby') || 'svg';
    const texts = [...svg.querySelectorAll('text')].map(one =>
      ({said: said(one.textContent), box: one.getBoundingClientRect()}));
    for (const {said, box} of texts)
      if (box.left < frame.left - slack || box.right > frame.right + slack
          || box.top + box.height * 0.18 < frame.top - slack
          || box.bottom - box.height * 0.18 > frame.bottom + slack)
        faults.push(`${name}: ${said} leaves its picture`);
    overlaps(texts.map(({said, box}) => ({said: `${name}: ${said}`, ...inner(box)})));
  }

  // Text of the page: none on another, none cut by the box it is in or by the page.
  const lines = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('svg, head, style, script')) continue;
    if (!parent.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const scroller = parent.closest('[role=group][tabindex]');
    const seen = scroller && scroller.getBoundingClientRect();
    for (const box of range.getClientRects()) {
      if (!box.width) continue;
      if (!scroller && (box.left < -slack || box.right > innerWidth + slack))
        faults.push(`${said(node.data)} leaves the page`);
      for (let around = parent; around && !scroller && around !== document.body;
           around = around.parentElement) {
        const style = getComputedStyle(around), edge = around.getBoundingClientRect();
        if (style.overflowX !== 'visible' && style.display !== 'inline'
            && (box.right > edge.right + slack || box.left < edge.left - slack))
          faults.push(`${said(node.data)} is cut by its ${around.tagName}`);
        if (style.overflowY !== 'visible' && style.overflowY !== 'auto'
            && (box.bottom > edge.bottom + slack || box.top < edge.top - slack))
          faults.push(`${said(node.data)} is cut by its ${around.tagName}`);
        // A block's text that sticks out of the block runs into what is beside it.
        if (style.display !== 'inline' && edge.width
            && (box.right > edge.right + slack || box.left < edge.left - slack))
          faults.push(`${said(node.data)} sticks out of its ${around.tagName}`);
      }
      if (seen && box.left >= seen.right || seen && box.right <= seen.left) continue;
      const line = {said: said(node.data), ...inner(box)};
      if (seen) {  // what the scroller does not show is under nothing
        line.left = Math.max(line.left, seen.left);
        line.right = Math.min(line.right, seen.right);
      }
      lines.push(line);
    }
  }
  overlaps(lines);

  function overlaps(boxes) {
    boxes.sort((one, other) => one.top - other.top);
    boxes.forEach((one, at) => {
      for (let next = at + 1; next < boxes.length && boxes[next].top < one.bottom; next++) {
        const other = boxes[next];
        if (one.left < other.right && other.left < one.right)
          faults.push(`${one.said} and ${other.said} overlap`);
      }
    });
  }
  return [...new Set(faults)];
}
