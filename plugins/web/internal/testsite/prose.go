package testsite

import (
	"fmt"
	"html"
	"math/rand/v2"
	"strings"
)

// prose generates text in a language. The same seed generates the same text.
type prose struct {
	rand    *rand.Rand
	grammar grammar
}

// grammar has the parts of sentences, in order.
type grammar struct {
	language string
	parts    [][]string
	join     string
	end      string
}

var grammars = map[string]grammar{
	"en": {"en", [][]string{
		{"The gateway", "Each sensor in the greenhouse", "A small turbine near the river", "The crew of the night shift", "Our oldest weather station", "The harbour's tide gauge", "Every third buoy", "The library of field notes"},
		{"records", "reports", "compares", "stores", "explains", "predicts", "repairs", "publishes"},
		{"the pressure of the water", "what the previous hour has shown", "a curve that nobody had expected", "the temperature of the bearings", "several thousand readings a day", "the drift of its own clock"},
		{"before the connection to the mainland is restored", "while the battery still has a third of its charge", "although the wind turns, and the rain begins", "because the archive keeps only the last season", "so that the engineers can see it in the morning", "without any help from the data centre"},
	}, " ", ". "},
	"de": {"de", [][]string{
		{"Die Messstation", "Jeder Fühler im Gewächshaus", "Die kleine Turbine am Fluß", "Das älteste Gerät der Werft", "Der Pegel im Hafen"},
		{"überträgt", "vergleicht", "speichert", "erklärt", "prüft"},
		{"den Wasserdruck", "die Werte der vorigen Stunde", "eine ungewöhnliche Kurve", "die Temperatur der Lager", "mehrere tausend Größen am Tag"},
		{"bevor die Verbindung zum Festland zurückkehrt", "während die Batterie noch zu einem Drittel geladen ist", "obwohl der Wind dreht, und der Regen einsetzt", "damit die Ingenieurinnen es früh sehen"},
	}, " ", ". "},
	"pt": {"pt", [][]string{
		{"A estação", "Cada sensor da estufa", "A pequena turbina junto ao rio", "O marégrafo do porto", "A tripulação da noite"},
		{"regista", "compara", "guarda", "explica", "prevê"},
		{"a pressão da água", "os valores da hora anterior", "uma curva que ninguém esperava", "a temperatura dos rolamentos", "milhares de medições por dia"},
		{"antes de a ligação ao continente voltar", "enquanto a bateria ainda tem um terço da carga", "embora o vento mude, e a chuva comece", "para que a manhã encontre tudo em ordem"},
	}, " ", ". "},
	"tr": {"tr", [][]string{
		{"Limandaki ölçüm istasyonu", "Seradaki her algılayıcı", "Irmağın yanındaki küçük türbin", "Gece vardiyasının ekibi"},
		{"suyun basıncını", "önceki saatin değerlerini", "beklenmeyen bir eğriyi", "yatakların sıcaklığını"},
		{"bağlantı geri gelmeden önce", "pilin üçte biri doluyken", "rüzgâr dönse, yağmur başlasa bile", "mühendisler sabah görsün diye"},
		{"kaydediyor", "karşılaştırıyor", "saklıyor", "açıklıyor"},
	}, " ", ". "},
	"ru": {"ru", [][]string{
		{"Станция в порту", "Каждый датчик теплицы", "Небольшая турбина у реки", "Ночная смена"},
		{"записывает", "сравнивает", "хранит", "объясняет"},
		{"давление воды", "значения прошлого часа", "неожиданную кривую", "температуру подшипников"},
		{"прежде чем связь с берегом вернётся", "пока батарея заряжена на треть", "хотя ветер меняется, и начинается дождь", "чтобы инженеры увидели это утром"},
	}, " ", ". "},
	"ja": {"ja", [][]string{
		{"港の観測所は", "温室の各センサーは", "川のそばの小さな水車は", "夜勤の担当者は"},
		{"水圧を", "前の時間の値を", "予想外の曲線を", "軸受の温度を"},
		{"本土との接続が戻る前に", "電池が三分の一残っている間に", "風が変わり、雨が降り始めても", "技術者が朝に見られるように"},
		{"記録する", "比較する", "保存する", "説明する"},
	}, "", "。"},
	"ar": {"ar", [][]string{
		{"محطة القياس في الميناء", "كل حساس في البيت الزجاجي", "التوربين الصغير قرب النهر"},
		{"تسجل", "تقارن", "تحفظ"},
		{"ضغط الماء", "قيم الساعة السابقة", "حرارة المحامل"},
		{"قبل أن يعود الاتصال", "بينما البطارية مشحونة إلى الثلث", "حتى يراها المهندسون في الصباح"},
	}, " ", ". "},
	"ko": {"ko", [][]string{
		{"항구의 관측소는", "온실의 모든 센서는", "강가의 작은 터빈은"},
		{"수압을", "이전 시간의 값을", "베어링의 온도를"},
		{"연결이 복구되기 전에", "배터리가 남아 있는 동안", "바람이 바뀌어도"},
		{"기록한다", "비교한다", "저장한다"},
	}, " ", ". "},
	"zh": {"zh", [][]string{
		{"港口的观测站", "温室里的每个传感器", "河边的小水轮机"},
		{"在连接恢复之前", "在电池还有三分之一的时候", "虽然风向改变，雨也开始下"},
		{"记录", "比较", "保存"},
		{"水的压力", "前一小时的数值", "轴承的温度"},
	}, "", "。"},
}

func newProse(language string, seed uint64) *prose {
	return &prose{rand: rand.New(rand.NewPCG(seed, 7)), grammar: grammars[language]}
}

func (p *prose) pick(list []string) string { return list[p.rand.IntN(len(list))] }

// sentence returns a sentence with its end.
func (p *prose) sentence() string {
	var words []string
	for _, part := range p.grammar.parts {
		words = append(words, p.pick(part))
	}
	return strings.TrimSpace(strings.Join(words, p.grammar.join) + p.grammar.end)
}

// paragraph returns some sentences.
func (p *prose) paragraph(least, most int) string {
	var sentences []string
	for range least + p.rand.IntN(most-least+1) {
		sentences = append(sentences, p.sentence())
	}
	return strings.Join(sentences, " ")
}

// heading returns a short title.
func (p *prose) heading() string {
	return p.pick(p.grammar.parts[0]) + p.grammar.join + p.pick(p.grammar.parts[1])
}

// draft collects the main content of a page, as HTML and as the text that a
// reader sees.
type draft struct {
	*prose
	html strings.Builder
	text strings.Builder
}

func newDraft(language string, seed uint64) *draft { return &draft{prose: newProse(language, seed)} }

// element adds an element with text.
func (d *draft) element(tag, text string) {
	name, _, _ := strings.Cut(tag, " ")
	fmt.Fprintf(&d.html, "<%s>%s</%s>\n", tag, html.EscapeString(text), name)
	d.text.WriteString(text + "\n")
}

// raw adds markup with its text.
func (d *draft) raw(markup, text string) {
	d.html.WriteString(markup + "\n")
	d.text.WriteString(text + "\n")
}

// paragraphs adds n paragraphs, some with emphasis and links.
func (d *draft) paragraphs(n int) {
	for i := range n {
		text := d.paragraph(2, 5)
		if i%3 == 1 {
			head, tail := text, d.sentence()
			d.raw(fmt.Sprintf(`<p>%s <a href="/more/%d">%s</a></p>`, html.EscapeString(head), i, html.EscapeString(tail)), head+" "+tail)
			continue
		}
		d.element("p", text)
	}
}

// section adds a heading and paragraphs.
func (d *draft) section(level, paragraphs int) {
	d.element(fmt.Sprintf("h%d", level), d.heading())
	d.paragraphs(paragraphs)
}

// list adds a nested list.
func (d *draft) list(tag string, items, depth int) {
	d.html.WriteString("<" + tag + ">\n")
	for i := range items {
		text := d.sentence()
		d.html.WriteString("<li>" + html.EscapeString(text))
		d.text.WriteString(text + "\n")
		if depth > 1 && i == items/2 {
			d.list(tag, items, depth-1)
		}
		d.html.WriteString("</li>\n")
	}
	d.html.WriteString("</" + tag + ">\n")
}

// table adds a table with a header.
func (d *draft) table(rows int) {
	d.raw("<table><thead><tr><th>Station</th><th>Reading</th><th>Remark</th></tr></thead><tbody>", "Station Reading Remark")
	for i := range rows {
		name, remark := d.heading(), d.sentence()
		d.raw(fmt.Sprintf("<tr><td>%s</td><td>%d.%d</td><td>%s</td></tr>", html.EscapeString(name), i*17, i, html.EscapeString(remark)), fmt.Sprintf("%s %d.%d %s", name, i*17, i, remark))
	}
	d.html.WriteString("</tbody></table>\n")
}

// code adds a block of code.
func (d *draft) code(language string, highlighted bool) {
	source := fmt.Sprintf("func measure%d(station string) (float64, error) {\n\treadings := load(station)\n\tif len(readings) == 0 {\n\t\treturn 0, errNone\n\t}\n\treturn mean(readings), nil\n}", d.rand.IntN(100))
	markup := html.EscapeString(source)
	if highlighted {
		markup = strings.NewReplacer("func", `<span class="k">func</span>`, "return", `<span class="k">return</span>`).Replace(markup)
	}
	d.raw(fmt.Sprintf(`<pre><code class="language-%s">%s</code></pre>`, language, markup), source)
}
